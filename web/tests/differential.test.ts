// The cases of tests/differential in Chromium and under Node, byte for byte as natively.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { Differential, type DifferentialCase } from "./differential.js";

// @ts-expect-error a script without types
import { findChromium, openBrowser } from "../../scripts/browser.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";

const root = new URL("../../", import.meta.url);
const outcomes = new URL("../build/native-outcomes.json", root);
const hasOutcomes = existsSync(outcomes);
const skip = hasOutcomes ? false : "no native outcomes: see scripts/web_tests";
const cases: DifferentialCase[] = hasOutcomes
  ? JSON.parse(readFileSync(outcomes, "utf8")).cases : [];
const chromium = findChromium() as string | null;
const TIMEOUT_MS = 120_000;
/** Cases that need what a page lacks, by their row of docs/limitations.md: they must differ. */
const LACKING = new Map([["python programs: recursion limits", "L184"]]);
/** Under Node, one case of four runs, to save time; WASMSAND_ALL_CASES=1 runs all. */
const PART = process.env.WASMSAND_ALL_CASES ? 1 : 4;

function testAll(
  chosen: DifferentialCase[], lacking: ReadonlyMap<string, string>,
  differs: (one: DifferentialCase) => Promise<string[]>,
): void {
  for (const one of chosen) {
    const row = lacking.get(one.name);
    test(row ? `${row}: ${one.name}` : one.name, { timeout: TIMEOUT_MS }, async () => {
      const found = await differs(one);
      if (row) assert.notDeepEqual(found, [], `the case does as natively: remove ${row}`);
      else assert.deepEqual(found, [], one.script);
    });
  }
}

describe("as natively, under Node", { skip }, () => {
  const here = new Differential(async () => {
    const { Sandbox } = await import(new URL("dist/node/index.js", root).href);
    return Sandbox.create();
  });
  testAll(cases.filter((_, index) => index % PART === 0), new Map(), (one) => here.run(one));
  after(() => here.end());
});

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
  testAll(cases, LACKING, (one) =>
    page.evaluate((given) => (globalThis as any).runDifferential(given), one));
});
