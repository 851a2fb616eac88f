// Firefox for tests, driven by WebDriver BiDi.
//
// Rules: it is used if it is there (Debian: firefox-esr; or $FIREFOX), and never installed. A profile
// of its own, which is removed at the end.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The path of Firefox; null if there is none. */
export function findFirefox() {
  const names = process.env.FIREFOX ? [process.env.FIREFOX] : ["firefox-esr", "firefox"];
  return names.find((name) => spawnSync(name, ["--version"]).status === 0) ?? null;
}

function started(path, profile) {
  const browser = spawn(path, [
    "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0",
  ], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const address = new Promise((resolve, reject) => {
    browser.on("exit", () => reject(new Error(`Firefox ended: ${said.slice(-500)}`)));
    browser.stderr.on("data", (text) => {
      said += text;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
      if (found) resolve(found[1]);
    });
  });
  return { browser, address };
}

/** A function that sends one command of BiDi. */
async function connected(address) {
  const socket = new WebSocket(`${address}/session`);
  const waiting = new Map();
  let counter = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.type === "error") reject?.(new Error(`${message.error}: ${message.message}`));
    else resolve?.(message.result);
  };
  socket.onclose = () => {
    for (const { reject } of waiting.values()) reject(new Error("Firefox has ended"));
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("Firefox refuses a connection"));
  });
  return (method, params) => new Promise((resolve, reject) => {
    waiting.set(++counter, { resolve, reject });
    socket.send(JSON.stringify({ id: counter, method, params }));
  });
}

/**
 * Start it: `version`, `open` and `close`. `localNames` are host names that mean this machine.
 * Invalid certificates are accepted.
 */
export async function openFirefox(path, { localNames = [] } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "wasmsand-firefox-"));
  writeFileSync(join(profile, "user.js"), [
    'user_pref("remote.active-protocols", 1);',
    `user_pref("network.dns.localDomains", "${localNames.join(",")}");`,
  ].join("\n"));
  const { browser, address } = started(path, profile);
  const send = await connected(await address);
  const { capabilities } = await send("session.new", {
    capabilities: { alwaysMatch: { acceptInsecureCerts: true } },
  });
  return {
    version: capabilities.browserVersion,
    open: (url) => openPage(send, url),
    close: () => new Promise((resolve) => {
      browser.removeAllListeners("exit");
      browser.on("exit", () => {
        rmSync(profile, { recursive: true, force: true });
        resolve();
      });
      browser.kill();
    }),
  };
}

/** A page: `call(functionText, ...values)` gives what the function returns or resolves with. */
async function openPage(send, url) {
  const { context } = await send("browsingContext.create", { type: "tab" });
  await send("browsingContext.navigate", { context, url, wait: "complete" });
  return {
    call: async (act, ...values) => {
      // Values travel as JSON, because BiDi describes each of them with its type.
      const text = `(text) => Promise.resolve((${act})(...JSON.parse(text))).then((found) => JSON.stringify(found) ?? "null")`;
      const answer = await send("script.callFunction", {
        functionDeclaration: text, target: { context }, awaitPromise: true,
        arguments: [{ type: "string", value: JSON.stringify(values) }],
      });
      if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
      return JSON.parse(answer.result.value);
    },
    /** A picture of the page, as a PNG in base64. */
    screenshot: async () => (await send("browsingContext.captureScreenshot", { context })).data,
    close: () => send("browsingContext.close", { context }),
  };
}
