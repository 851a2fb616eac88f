// The cases in Firefox, where it is installed.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { cases } from "./cases/index.js";
import { differentialScripts } from "./cases/scripts.js";
import { nativeRun } from "./native.js";
import { startOutside } from "./outside-server.js";

// @ts-expect-error a script without types
import { findFirefox, openFirefox } from "../../scripts/firefox.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";

const root = new URL("../../", import.meta.url).pathname;
const path = findFirefox() as string | null;
const skip = path ? false : "no Firefox (Debian: firefox-esr)";
const NAMES = ["web.test", "other.web.test"];

describe("in Firefox", { skip }, () => {
  let server: { origin: string; close(): Promise<void> };
  let firefox: { version: string; open(url: string): Promise<any>; close(): Promise<void> };
  let outside: Awaited<ReturnType<typeof startOutside>>;
  let page: { call(act: string | Function, ...values: unknown[]): Promise<any> };

  before(async () => {
    server = await serve(root);
    outside = await startOutside();
    firefox = await openFirefox(path, { localNames: NAMES });
    const { plainPort, securePort, log } = outside;
    const place = encodeURIComponent(JSON.stringify({ plainPort, securePort, log, hosts: null }));
    page = await firefox.open(`${server.origin}/tests/page.html?outside=${place}`);
    while (!(await page.call("() => globalThis.ready ?? false"))) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
  after(async () => {
    await firefox?.close();
    await server?.close();
    await outside?.close();
  });

  test("the page is isolated, and programs have workers of their own", { timeout: 120_000 }, async () => {
    const found = await page.call(async () => {
      const sandbox = await (globalThis as any).api.Sandbox.create();
      sandbox.destroy();
      return [globalThis.crossOriginIsolated, sandbox.boot.driver];
    });
    assert.deepEqual(found, [true, "workers"]);
  });

  test("the playground works", { timeout: 120_000 }, async () => {
    const site = await serve(`${root}site`);
    const opened = await firefox.open(`${site.origin}/`);
    const until = async (condition: string) => {
      while (!(await opened.call(condition))) await new Promise((resolve) => setTimeout(resolve, 100));
    };
    const shows = (text: string) => until(`() => globalThis.playground?.screen().includes("${text}")`);
    const click = (title: string) => opened.call(
      "(title) => [...document.querySelectorAll('.example')].find((one) => one.textContent.startsWith(title)).click()",
      title,
    );
    await shows("user@sandbox:~$");
    await click("A pipeline");
    await shows("5050");
    await click("A picture from Python");
    await until("() => document.querySelector('#results img')?.naturalWidth === 256");
    await opened.close();
    await site.close();
  });

  for (const one of cases) {
    test(one.name, { timeout: one.timeoutMs ?? 180_000 }, async () => {
      await page.call("(name) => globalThis.runCase(name)", one.name);
    });
  }
  for (const script of differentialScripts) {
    test(`as native bash: ${script}`, { timeout: 120_000 }, async () => {
      const found = await page.call("(text) => globalThis.runScript(text)", script);
      assert.deepEqual(found, nativeRun(script));
    });
  }
});
