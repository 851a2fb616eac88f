// Runs a few commands in Firefox, by WebDriver BiDi: node scripts/firefox.mjs [PATH OF FIREFOX]
//
// Rules: it needs Firefox (Debian: firefox-esr), dist/ and assets/. It is no part of the tests.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "./static-server.mjs";

const PATIENCE_MS = 400_000;

/** Firefox with a new profile, and a function that sends one BiDi command. */
async function openFirefox(path) {
  const profile = mkdtempSync(join(tmpdir(), "wasmsand-firefox-"));
  writeFileSync(join(profile, "user.js"), 'user_pref("remote.active-protocols", 1);\n');
  const browser = spawn(path, [
    "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0",
  ], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const address = await new Promise((resolve, reject) => {
    browser.on("exit", () => reject(new Error(`Firefox ended: ${said.slice(-500)}`)));
    browser.stderr.on("data", (text) => {
      said += text;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
      if (found) resolve(found[1]);
    });
  });
  const socket = new WebSocket(`${address}/session`);
  const waiting = new Map();
  let counter = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    const { resolve, reject } = waiting.get(message.id) ?? {};
    if (message.type === "error") reject?.(new Error(message.message));
    else resolve?.(message.result);
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("Firefox refuses a connection"));
  });
  return {
    send: (method, params) => new Promise((resolve, reject) => {
      waiting.set(++counter, { resolve, reject });
      socket.send(JSON.stringify({ id: counter, method, params }));
    }),
    close: () => {
      browser.removeAllListeners("exit");
      browser.on("exit", () => rmSync(profile, { recursive: true, force: true }));
      browser.kill();
    },
  };
}

/** Runs in the page. */
async function tryOut(found) {
  found.push(`isolated: ${crossOriginIsolated}`);
  try {
    const { Sandbox } = await import("/dist/browser/index.js");
    let began = performance.now();
    const lap = (what) => {
      found.push(`${what} (${Math.round(performance.now() - began)} ms)`);
      began = performance.now();
    };
    const sandbox = await Sandbox.create();
    lap(`created, from a stored memory: ${sandbox.boot.fromSnapshot}`);
    for (const command of [
      "echo hi", "echo hi", "seq 100 | sort -n | tail -1", "( echo forked )", "git --version",
      "python3 -c 'print(6*7)'", "python3 -c 'print(6*7)'",
    ]) {
      const { exitCode, stdout, stderr } = await sandbox.run(command, { timeoutMs: 60_000 });
      lap(`${command}: ${exitCode} ${(stdout + stderr).trim()}`);
    }
    const stopped = await sandbox.run("while :; do :; done", { timeoutMs: 1000 });
    lap(`a runaway: ${stopped.exitCode}`);
    sandbox.destroy();
    found.push("done");
  } catch (error) {
    found.push(`FAILED: ${error.name}: ${error.message}`);
  }
}

const server = await serve(new URL("..", import.meta.url).pathname);
const firefox = await openFirefox(process.argv[2] ?? "firefox-esr");
const { capabilities } = await firefox.send("session.new", { capabilities: {} });
console.log(`${capabilities.browserName} ${capabilities.browserVersion}`);
const { context } = await firefox.send("browsingContext.create", { type: "tab" });
await firefox.send("browsingContext.navigate", {
  context, url: `${server.origin}/tests/empty.html`, wait: "complete",
});
const evaluate = async (expression) => {
  const answer = await firefox.send("script.evaluate", {
    expression, target: { context }, awaitPromise: false,
  });
  return answer.result?.value ?? JSON.stringify(answer.exceptionDetails?.text);
};
await evaluate(`globalThis.found = []; void (${tryOut})(globalThis.found)`);
const until = performance.now() + PATIENCE_MS;
for (let told = 0; ; ) {
  const lines = JSON.parse(await evaluate("JSON.stringify(globalThis.found)"));
  for (const line of lines.slice(told)) console.log(line);
  told = lines.length;
  const isOver = lines.some((line) => line === "done" || line.startsWith("FAILED"));
  if (isOver || performance.now() > until) break;
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
firefox.close();
await server.close();
setTimeout(() => process.exit(0), 1000);
