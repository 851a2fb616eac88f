// The cases of tests/differential in Chromium, byte for byte as natively.

import { after, before, describe } from "node:test";
import type { Page } from "playwright-core";
import { differentialCases, skip, testAll } from "./differential-cases.js";

// @ts-expect-error a script without types
import { findChromium, openBrowser } from "../../scripts/browser.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";

const root = new URL("../../", import.meta.url);
const chromium = findChromium() as string | null;
/** Cases that need what a page lacks, by their row of docs/limitations.md: they must differ. */
const LACKING = new Map([["python programs: recursion limits", "L184"]]);
const skipPage = skip || (chromium ? false : "no Chromium, and apt-get cannot install it");
describe("as natively, in a page", { skip: skipPage }, () => {
  let server: { origin: string; close(): Promise<void> };
  let browser: { context: import("playwright-core").BrowserContext; close(): Promise<void> };
  let page: Page;

  before(async () => {
    server = await serve(root.pathname);
    browser = await openBrowser(chromium);
    page = await browser.context.newPage();
    await page.goto(`${server.origin}/tests/page.html`);
    await page.waitForFunction("globalThis.ready");
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });
  testAll(differentialCases, LACKING, (one) =>
    page.evaluate((given) => (globalThis as any).runDifferential(given), one));
});
