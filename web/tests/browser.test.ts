// The cases in Chromium.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { Case } from "./check.js";
import { cases } from "./cases/index.js";
import { networkCases } from "./cases/network.js";
import { differentialScripts } from "./cases/scripts.js";
import { startOutside } from "./outside-server.js";
import { nativeRun } from "./native.js";

// @ts-expect-error a script without types
import { findChromium, openBrowser } from "../../scripts/browser.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";

const root = new URL("../../", import.meta.url).pathname;
const chromium = findChromium() as string | null;
/** The browser finds the servers of the tests, and accepts their certificate. */
const OUTSIDE_FLAGS = [
  "--host-resolver-rules=MAP web.test 127.0.0.1, MAP *.web.test 127.0.0.1",
  "--ignore-certificate-errors",
];
const skip = chromium ? false : "no Chromium, and apt-get cannot install it";

interface Server {
  origin: string;
  sent: { path: string; bytes: number }[];
  close(): Promise<void>;
}

interface Browser {
  context: import("playwright-core").BrowserContext;
  close(): Promise<void>;
}

/** A page with shared memory, and one whose server sends no headers for that. */
const PAGES = [
  { what: "in a browser", isolated: true, driver: "workers" },
  { what: "in a page that is not isolated", isolated: false, driver: "suspending" },
];

/** What does not depend on how programs run is only tested in one page, to save time. */
function isForPage(one: Case, isolated: boolean): boolean {
  if (isolated) return true;
  if (/^L\d+:|^compiled packages/.test(one.name)) return false;
  return !networkCases.includes(one) || /^(programs reach|large bodies|a program that waits)/.test(one.name);
}

for (const { what, isolated, driver } of PAGES) describe(what, { skip }, () => {
  let server: Server;
  let browser: Browser;
  let page: Page;
  let outside: Awaited<ReturnType<typeof startOutside>>;

  before(async () => {
    server = await serve(root, { isolated });
    outside = await startOutside();
    browser = await openBrowser(chromium, { flags: OUTSIDE_FLAGS });
    page = await browser.context.newPage();
    page.on("console", (message) => console.error(`page: ${message.text()}`));
    const { plainPort, securePort, log } = outside;
    const place = encodeURIComponent(JSON.stringify({ plainPort, securePort, log, hosts: null }));
    await page.goto(`${server.origin}/tests/page.html?outside=${place}`);
    await page.waitForFunction("globalThis.ready");
  });

  after(async () => {
    await browser?.close();
    await server?.close();
    await outside?.close();
  });

  test("the page chooses how programs run, and says so", { timeout: 60_000 }, async () => {
    const found = await page.evaluate(async () => {
      const sandbox = await (globalThis as any).api.Sandbox.create();
      sandbox.destroy();
      return [globalThis.crossOriginIsolated, sandbox.boot.driver];
    });
    assert.deepEqual(found, [isolated, driver]);
  });

  for (const one of cases.filter((each) => isForPage(each, isolated))) {
    test(one.name, { timeout: one.timeoutMs ?? 120_000 }, async () => {
      await page.evaluate((name) => (globalThis as any).runCase(name), one.name);
    });
  }
  for (const script of differentialScripts) {
    test(`as native bash: ${script}`, { timeout: 60_000 }, async () => {
      const found = await page.evaluate((text) => (globalThis as any).runScript(text), script);
      assert.deepEqual(found, nativeRun(script));
    });
  }

  test("wasmDir adds the programs that an index names", { timeout: 60_000 }, async () => {
    const place = join(root, "dist/tests/programs");
    mkdirSync(place, { recursive: true });
    cpSync(join(root, "../src/wasmsand/_image/cal.wasm"), join(place, "mycal.wasm"));
    writeFileSync(join(place, "index.json"), JSON.stringify(["mycal.wasm", "../page.js", "x/y.wasm", 5]));
    const found = await page.evaluate(async () => {
      const { Sandbox } = (globalThis as any).api;
      const sandbox = await Sandbox.create({ wasmDir: "/dist/tests/programs" });
      const { stdout } = await sandbox.run("ls /usr/local/bin; mycal 1 2024 | head -1");
      sandbox.destroy();
      const missing = await Sandbox.create({ wasmDir: "/nowhere" }).catch((error: Error) => error);
      return [stdout.trim().split(/\s+/).join(" "), missing.message];
    });
    rmSync(place, { recursive: true });
    assert.equal(found[0], "mycal January 2024");
    assert.match(found[1]!, /nowhere\/index\.json: the server says 404/);
  });

  test("assets are kept: a second page fetches none", { timeout: 60_000 }, async () => {
    const before = server.sent.length;
    const second = await browser.context.newPage();
    await second.goto(`${server.origin}/tests/page.html`);
    await second.waitForFunction("globalThis.ready");
    const result = await second.evaluate(() => (globalThis as any).runScript("echo again"));
    assert.equal(result.stdout, "again\n");
    const fetched = server.sent.slice(before).filter(({ path }) => path.endsWith(".bin"));
    assert.deepEqual(fetched, []);
    await second.close();
  });
});
