// The package as npm installs it: found by its name, by ES modules, CommonJS and TypeScript.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";

const root = new URL("../../", import.meta.url).pathname;
const USE = 'const sandbox = await Sandbox.create();\n' +
  'console.log((await sandbox.run("echo installed")).stdout.trim());\nsandbox.destroy();\n';
const SOURCES = {
  "main.mjs": `import { Sandbox } from "@wasmsand/sandbox";\n${USE}`,
  "main.cjs": `const { Sandbox } = require("@wasmsand/sandbox");\n(async () => {\n${USE}})();\n`,
  "main.ts":
    'import { NotFoundError, Sandbox, type RunResult, type SandboxOptions } from "@wasmsand/sandbox";\n' +
    "const options: SandboxOptions = { timeoutMs: 1000, packages: [\"requests\"] };\n" +
    "const sandbox = await Sandbox.create(options);\n" +
    'const result: RunResult = await sandbox.run("true", { signal: AbortSignal.timeout(1) });\n' +
    "const code: number = result.exitCode;\n" +
    'await sandbox.readFile("x").catch((error: NotFoundError) => error.path);\n' +
    "// @ts-expect-error an option that there is not\n" +
    "await Sandbox.create({ timeout: 3 });\nvoid code;\n",
  "package.json": '{ "type": "module" }',
};

/** The files that npm would pack. */
function packedFiles(): string[] {
  const words = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const done = spawnSync("npm", words, { cwd: root, encoding: "utf8", maxBuffer: 1 << 27 });
  assert.equal(done.status, 0, done.stderr);
  return JSON.parse(done.stdout)[0].files.map(({ path }: { path: string }) => path);
}

describe("the package as npm installs it", () => {
  const place = mkdtempSync(join(tmpdir(), "wasmsand-installed-"));
  let files: string[];

  before(() => {
    files = packedFiles();
    const installed = join(place, "node_modules/@wasmsand/sandbox");
    for (const file of files.filter((path) => !path.startsWith("assets/"))) {
      mkdirSync(dirname(join(installed, file)), { recursive: true });
      cpSync(join(root, file), join(installed, file));
    }
    symlinkSync(join(root, "assets"), join(installed, "assets"));
    symlinkSync(join(root, "node_modules/pyodide"), join(place, "node_modules/pyodide"));
    for (const [name, text] of Object.entries(SOURCES)) writeFileSync(join(place, name), text);
  });
  after(() => rmSync(place, { recursive: true }));

  const run = (...words: string[]) =>
    spawnSync(process.execPath, words, { cwd: place, encoding: "utf8", timeout: 100_000 });

  test("it has what it needs, and nothing of the tests", () => {
    for (const needed of ["LICENSE", "NOTICE", "README.md", "assets/index.json", "assets/licences/programs/LICENCES.md"]) {
      assert.ok(files.includes(needed), `${needed} is missing`);
    }
    const others = files.filter((path) => /^(dist\/(tests|bench)|tests|src|scripts)\//.test(path));
    assert.deepEqual(others, []);
  });

  for (const name of ["main.mjs", "main.cjs"]) {
    test(`${name} finds it by its name`, { timeout: 120_000 }, () => {
      const done = run(name);
      assert.deepEqual([done.stdout, done.status], ["installed\n", 0], done.stderr);
    });
  }

  for (const [module, resolution] of [["nodenext", "nodenext"], ["esnext", "bundler"]]) {
    test(`TypeScript finds its types (${resolution})`, { timeout: 120_000 }, () => {
      const done = run(
        join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--target", "es2024",
        "--lib", "es2024,dom", "--module", module!, "--moduleResolution", resolution!, "main.ts",
      );
      assert.equal(done.status, 0, done.stdout + done.stderr);
    });
  }
});
