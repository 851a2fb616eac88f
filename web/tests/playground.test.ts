// The playground in Chromium: terminal, files, Python, reload, offline, a server without headers.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";

// @ts-expect-error a script without types
import { findChromium, openBrowser } from "../../scripts/browser.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";

const site = join(new URL("../../", import.meta.url).pathname, "site");
const chromium = findChromium() as string | null;
const skip = chromium ? false : "no Chromium, and apt-get cannot install it";

interface Server {
  origin: string;
  close(): Promise<void>;
}
interface Browser {
  context: BrowserContext;
  close(): Promise<void>;
}

async function shows(page: Page, text: string): Promise<void> {
  const screen = () => page.evaluate(() => (globalThis as any).playground?.screen() as string);
  try {
    await page.waitForFunction(
      (wanted) => (globalThis as any).playground?.screen().includes(wanted), text,
    );
  } catch {
    const status = await page.textContent("#status");
    throw new Error(`the screen does not show ${text}: ${await screen()} (status: ${status})`);
  }
}

async function opened(context: BrowserContext, origin: string): Promise<Page> {
  const page = await context.newPage();
  page.on("console", (message) => console.error(`page: ${message.text()}`));
  page.on("pageerror", (error) => console.error(`page: ${error}`));
  await page.goto(`${origin}/`);
  await shows(page, "user@sandbox:~$");
  return page;
}

describe("the playground", { skip }, () => {
  let server: Server;
  let browser: Browser;

  before(async () => {
    server = await serve(site);
    browser = await openBrowser(chromium);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  test("a command typed into the terminal shows its output and its files", { timeout: 90_000 }, async () => {
    const page = await opened(browser.context, server.origin);
    await page.click("#terminal");
    await page.keyboard.type("echo $((6*7)) > typed.txt; cat typed.txt\n");
    await shows(page, "\n42\n");
    await page.waitForSelector("#tree >> text=typed.txt");
    await page.click("#tree >> text=typed.txt");
    await page.waitForSelector("#editor:not([hidden])");
    assert.equal(await page.inputValue("#text"), "42\n");
    await page.fill("#text", "edited\n");
    await page.click("#editor button[type=submit]");
    await page.waitForSelector("#status:has-text('saved')");
    await page.click("#terminal");
    await page.keyboard.type("cat typed.txt\n");
    await shows(page, "\nedited\n");
    await page.close();
  });

  test("an uploaded file is there, and Python reads it", { timeout: 90_000 }, async () => {
    const page = await opened(browser.context, server.origin);
    const buffer = Buffer.from("one\ntwo\n");
    await page.setInputFiles("#upload", { name: "up.txt", mimeType: "text/plain", buffer });
    await page.waitForSelector("#tree >> text=up.txt");
    await page.click("#tab-python");
    await page.fill("#code", "len(open('up.txt').readlines())");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector("#results pre:text-is('2')");
    await page.close();
  });

  test("a reload keeps the files", { timeout: 90_000 }, async () => {
    const page = await opened(browser.context, server.origin);
    await page.click("#terminal");
    await page.keyboard.type("echo stays > kept.txt; echo written\n");
    await shows(page, "\nwritten\n");
    await page.waitForFunction(() => (globalThis as any).playground.saved()).catch(async () => {
      throw new Error(`nothing was saved: ${await page.textContent("#status")}`);
    });
    await page.reload();
    await shows(page, "user@sandbox:~$");
    await page.click("#terminal");
    await page.keyboard.type("cat kept.txt\n");
    await shows(page, "\nstays\n");
    await page.close();
  });

  test("it works offline after a visit", { timeout: 90_000 }, async () => {
    const first = await opened(browser.context, server.origin);
    await first.reload(); // now through the service worker
    await shows(first, "user@sandbox:~$");
    await first.close();
    await server.close();
    const page = await opened(browser.context, server.origin);
    await page.click("#terminal");
    await page.keyboard.type("echo off$((1+1))line\n");
    await shows(page, "\noff2line\n");
    await page.close();
  });
});

test("a server without the headers is enough for the playground", { skip, timeout: 90_000 }, async () => {
  const server = (await serve(site, { isolated: false })) as Server;
  const browser = (await openBrowser(chromium)) as Browser;
  const page = await opened(browser.context, server.origin);
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
  await browser.close();
  await server.close();
});
