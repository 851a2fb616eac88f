// Prints how much a page transfers: for the first `echo hi`, the first Python, and the first numpy.
//
// Usage: node scripts/sizes.mjs. It needs dist/, assets/ and Chromium. Fails over budget.

import { findChromium, openBrowser } from "./browser.mjs";
import { serve } from "./static-server.mjs";

const BUDGET_MB = { "echo hi": 15, "python3 -c 'print(1)'": 50, "import json, sqlite3": 50 };
const STEPS = [
  ["echo hi", "echo hi"],
  ["python3 -c 'print(1)'", "python3 -c 'print(1)'"],
  ["import json, sqlite3", "python3 -c 'import json, sqlite3'"],
  ["git init", "git init -q r"],
];

const chromium = findChromium();
if (!chromium) process.exit(1);
const server = await serve(new URL("..", import.meta.url).pathname);
const browser = await openBrowser(chromium);
const page = await browser.context.newPage();
page.on("console", (message) => console.error(message.text()));
await page.goto(`${server.origin}/tests/empty.html`);
const took = (run) => page.evaluate(run.code, run.argument);
let over = false;
const boot = await took({
  code: async () => {
    const began = performance.now();
    const { Sandbox } = await import("/dist/browser/index.js");
    window.sandbox = await Sandbox.create();
    return { ms: performance.now() - began, ...window.sandbox.boot };
  },
});
console.log(`boot: ${Math.round(boot.ms)} ms${boot.fromSnapshot ? ", from a stored memory" : ""}`);
async function step(name, command) {
  const result = await took({
    code: async (script) => {
      const began = performance.now();
      const { exitCode, stderr } = await window.sandbox.run(script);
      return { exitCode, stderr, ms: performance.now() - began };
    },
    argument: command,
  });
  const bytes = server.sent.reduce((sum, file) => sum + file.bytes, 0);
  const budget = BUDGET_MB[name];
  over ||= result.exitCode !== 0 || (budget !== undefined && bytes > budget * 1e6);
  const limit = budget ? ` (budget ${budget})` : "";
  console.log(
    `after ${name}: ${(bytes / 1e6).toFixed(1)} MB${limit} in ${server.sent.length} files; ` +
      `exit code ${result.exitCode}, ${Math.round(result.ms)} ms${result.stderr}`,
  );
}

for (const [name, command] of STEPS) await step(name, command);
// Compiled packages, in a sandbox of their own.
const problem = await took({
  code: async () => {
    const { Sandbox } = await import("/dist/browser/index.js");
    window.sandbox.destroy();
    try {
      window.sandbox = await Sandbox.create({ packages: ["numpy"], timeoutMs: null });
    } catch (error) {
      if (error.name !== "PackageError") throw error;
      return error.message;
    }
  },
});
if (problem) console.log(`packages: skipped: ${problem}`);
else await step("import numpy", "python3 -c 'import numpy'");
if (process.argv.includes("--files")) {
  for (const { path, bytes } of server.sent) console.log(String(bytes).padStart(10), path);
}
await browser.close();
await server.close();
process.exit(over ? 1 : 0);
