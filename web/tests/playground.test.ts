// The playground in Chromium: the same page with a sandbox of its own and with one of a server.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test, type TestContext } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { startOutside } from "./outside-server.js";

// @ts-expect-error a script without types
import { findChromium, openBrowser } from "../../scripts/browser.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";
// @ts-expect-error a script without types
import { missingServer, playgroundAddress, startWasmsand } from "../../scripts/wasmsand.mjs";

const site = join(new URL("../../", import.meta.url).pathname, "site");
const chromium = findChromium() as string | null;
const skip = chromium ? false : "no Chromium, and apt-get cannot install it";
const skipServer = skip || (missingServer() as string | false);

interface Server {
  /** Of a static server. */
  origin: string;
  /** What `wasmsand` has printed. */
  said(): string;
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

async function visited(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  page.on("console", (message) => console.error(`page: ${message.text()}`));
  page.on("pageerror", (error) => console.error(`page: ${error}`));
  return page;
}

async function opened(context: BrowserContext, address: string): Promise<Page> {
  const page = await visited(context);
  await page.goto(address);
  await shows(page, "user@sandbox:~$");
  return page;
}

async function typed(page: Page, command: string, wanted: string): Promise<void> {
  await page.click("#terminal");
  await page.keyboard.type(`${command}\n`);
  await shows(page, wanted);
}

async function python(page: Page, code: string, wanted: string): Promise<void> {
  await page.click("#tab-python");
  await page.fill("#code", code);
  await page.press("#code", "Control+Enter");
  await page.waitForSelector(`#results .run:last-child ${wanted}`);
}

/** What both back ends do alike. `address` is where the page is. */
function commonTests(page: () => Promise<Page>): void {
  test("typed commands show their output; the editor changes files", { timeout: 90_000 }, async () => {
    const one = await page();
    await typed(one, "echo $((6*7)) > typed.txt; cat typed.txt", "\n42\n");
    await one.click("#tab-files");
    await one.click("#tree >> text=typed.txt");
    await one.waitForSelector("#editor-form:not([hidden])");
    assert.equal(await one.inputValue("#text"), "42\n");
    await one.fill("#text", "edited\n");
    await one.press("#text", "Control+s");
    await one.waitForSelector("#status:has-text('saved')");
    await one.waitForSelector("#editor-changed", { state: "hidden" });
    await typed(one, "cat typed.txt", "\nedited\n");
    await one.close();
  });

  test("job control and vim work in the terminal", { timeout: 90_000 }, async () => {
    const one = await page();
    await one.click("#terminal");
    await one.keyboard.type("sleep 100\n");
    await one.waitForTimeout(500);
    await one.keyboard.press("Control+z");
    await shows(one, "Stopped");
    await typed(one, "kill %1; wait; echo job$((1+1))done", "\njob2done\n");
    await one.keyboard.type("vim written.txt\n");
    await shows(one, "[New]");
    await one.keyboard.type("ifrom vim");
    await one.keyboard.press("Escape");
    await one.keyboard.type(":wq\n");
    await shows(one, "$ vim written.txt"); // the screen before vim is back
    await one.waitForFunction(() => /\$ vim written\.txt\n.*\$$/.test((globalThis as any).playground.screen()));
    await typed(one, "cat written.txt; echo after", "\nfrom vim\nafter\n");
    await one.close();
  });

  test("files are uploaded, dropped, downloaded and deleted", { timeout: 90_000 }, async () => {
    const one = await page();
    one.on("dialog", (dialog) => void dialog.accept());
    await one.click("#tab-files");
    const buffer = Buffer.from("one\ntwo\n");
    await one.setInputFiles("#upload", { name: "up.txt", mimeType: "text/plain", buffer });
    await one.waitForSelector("#tree >> text=up.txt");
    const dropped = await one.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["dropped"], "drop.txt"));
      return transfer;
    });
    await one.dispatchEvent("#terminal", "drop", { dataTransfer: dropped });
    await one.waitForSelector("#tree >> text=drop.txt");
    const [download] = await Promise.all([
      one.waitForEvent("download"), one.click("button[title='Download up.txt']"),
    ]);
    assert.equal(readFileSync(await download.path(), "utf8"), "one\ntwo\n");
    await one.click("button[title='Delete drop.txt']");
    await one.waitForSelector("#tree >> text=drop.txt", { state: "detached" });
    await python(one, "len(open('up.txt').readlines())", "pre:text-is('2')");
    await one.close();
  });

  test("Python shows pictures, and HTML without rights", { timeout: 90_000 }, async () => {
    const one = await page();
    await one.click("#tab-examples");
    await one.click("text=A picture from Python");
    const picture = await one.waitForSelector("#results img");
    await one.waitForFunction((image) => (image as HTMLImageElement).naturalWidth === 256, picture);
    const hostile =
      "from IPython.display import HTML\nHTML('''<p>shown</p>" +
      "<script>parent.document.title = 'owned'; top.location = 'about:blank'</script>" +
      "<img src=x onerror=\"parent.document.title = 'owned'\">" +
      "<meta http-equiv=refresh content=\"0; url=/headers.json\">''')";
    await python(one, hostile, "iframe");
    const frame = await one.waitForSelector("#results .run:last-child iframe");
    assert.equal(await frame.getAttribute("sandbox"), "");
    const inside = (await frame.contentFrame())!;
    await inside.waitForSelector("text=shown");
    await one.waitForTimeout(500);
    assert.equal(inside.url(), "about:srcdoc");
    assert.equal(await one.title(), "wasmsand playground");
    await python(one, "while True: pass", ":text('runs')");
    await one.click("#stop-cell");
    await one.waitForSelector("#results .run:last-child pre.bad:has-text('KeyboardInterrupt')");
    await one.close();
  });

  test("what programs print and name stays text", { timeout: 90_000 }, async () => {
    const one = await page();
    const image = "<img src=x onerror=document.title=1>";
    // A title, the clipboard, a link, and a report that the terminal would type.
    const hostile = "\\033]0;owned\\007\\033]2;owned\\007\\033]52;c;b3duZWQ=\\007" +
      "\\033]8;;javascript:document.title=2\\007click\\033]8;;\\007\\033]21t";
    await typed(one, `mkdir 'd ${image}'; touch '${image}' 'd ${image}/${image}'; printf '${hostile}'; echo made`, "made\n");
    await one.click("#tab-files");
    await one.waitForSelector("#tree .name:has-text('onerror')");
    await python(one, `print("${image}"); raise ValueError("${image}")`, "pre.bad");
    await one.click("#tab-files");
    await one.click(`#tree .name:text-is("${image}")`);
    await one.waitForSelector("#editor-form:not([hidden])");
    await one.waitForTimeout(500);
    assert.equal(await one.title(), "wasmsand playground");
    assert.equal(await one.locator("img").count(), 0);
    assert.equal(await one.locator("a").count(), 0);
    await one.close();
  });

  test("the page can be used with the keyboard alone", { timeout: 90_000 }, async () => {
    const one = await page();
    const focused = () => one.evaluate(() => document.activeElement?.id);
    await one.click("#terminal");
    await one.keyboard.press("F6");
    const first = await focused();
    assert.match(first!, /^tab-/);
    await one.keyboard.press("ArrowRight");
    assert.notEqual(await focused(), first);
    await one.keyboard.press("F6");
    await typed(one, "echo back$((1+1))", "\nback2\n");
    await one.close();
  });

  test("a reload keeps the files", { timeout: 90_000 }, async () => {
    const one = await page();
    await typed(one, "echo stays > kept.txt; echo written", "\nwritten\n");
    await one.waitForFunction(() => (globalThis as any).playground.saved()).catch(async () => {
      throw new Error(`nothing was saved: ${await one.textContent("#status")}`);
    });
    await one.reload();
    await shows(one, "user@sandbox:~$");
    await typed(one, "cat kept.txt", "\nstays\n");
    await one.close();
  });
}

describe("the playground with a sandbox of the page", { skip }, () => {
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

  commonTests(() => opened(browser.context, `${server.origin}/`));

  test("it works offline after a visit", { timeout: 90_000 }, async () => {
    const first = await opened(browser.context, `${server.origin}/`);
    await first.reload(); // now through the service worker
    await shows(first, "user@sandbox:~$");
    await first.close();
    await server.close();
    const page = await opened(browser.context, `${server.origin}/`);
    await typed(page, "echo off$((1+1))line", "\noff2line\n");
    await page.close();
  });
});

/** Tries everything by which a script could reach something, and tells the page what it could. */
const ESCAPED = `
const could = [];
const attempt = async (what, act) => {
  try { await act(); could.push(what); } catch {}
};
const connected = (socket) => new Promise((open, fail) => { socket.onopen = open; socket.onerror = fail; });
await attempt("fetch", () => fetch("/headers.json"));
await attempt("fetch elsewhere", () => fetch("http://127.0.0.1:9/", { mode: "no-cors" }));
await attempt("a request", () => {
  const request = new XMLHttpRequest();
  request.open("GET", "/headers.json", false);
  request.send();
});
await attempt("a socket", () => connected(new WebSocket(location.origin.replace("http", "ws"))));
await attempt("a stream of events", () => connected(new EventSource("/headers.json")));
await attempt("eval", () => eval("1"));
await attempt("a function of text", () => new Function("return 1")());
await attempt("an import", () => import("/main.js"));
await attempt("an import of a blob", () => import(URL.createObjectURL(new Blob([""], { type: "text/javascript" }))));
await attempt("a worker", () => new Promise((resolve, reject) => {
  const worker = new Worker("/guest-worker.js", { type: "module" });
  worker.onerror = reject;
  setTimeout(resolve, 1000);
}));
if (typeof document !== "undefined" || typeof window !== "undefined") could.push("the document");
if (typeof cookieStore !== "undefined" || typeof localStorage !== "undefined") could.push("cookies or storage");
new BroadcastChannel("could").postMessage(could);
`;

/** A browser that stays open after a failure would keep this file from ending. */
function closeAfter(t: TestContext, ...opened: { close(): Promise<void> }[]): void {
  t.after(async () => {
    for (const one of opened) await one.close();
  });
}

test("a worker of a program may load nothing, even if its script were replaced", { skip, timeout: 90_000 }, async (t) => {
  const place = mkdtempSync(join(tmpdir(), "wasmsand-escaped-"));
  const script = join(place, "guest-worker.js");
  writeFileSync(script, ESCAPED);
  const change = (path: string) => (path.endsWith("/guest-worker.js") ? script : path);
  const server = (await serve(site, { change })) as Server;
  const browser = (await openBrowser(chromium)) as Browser;
  closeAfter(t, browser, server);
  const page = await browser.context.newPage();
  await page.addInitScript(() => {
    const channel = new BroadcastChannel("could");
    channel.onmessage = (event) => ((globalThis as any).could = event.data);
  });
  await page.goto(`${server.origin}/`);
  const could = await (await page.waitForFunction(() => (globalThis as any).could)).jsonValue();
  assert.deepEqual(could, []);
  rmSync(place, { recursive: true });
});

test("a browser that is too old is told what to do", { skip, timeout: 90_000 }, async (t) => {
  const server = (await serve(site)) as Server;
  const browser = (await openBrowser(chromium)) as Browser;
  closeAfter(t, browser, server);
  const page = await browser.context.newPage();
  await page.addInitScript("WebAssembly.validate = () => false");
  await page.goto(`${server.origin}/`);
  await page.waitForSelector("#status.bad:has-text('use Chrome or Edge 137, Firefox 131, Safari 18.4')");
  assert.equal(await page.textContent("#welcome-text"), "The sandbox could not start.");
});

test("a server without the headers is enough for the playground", { skip, timeout: 90_000 }, async (t) => {
  const server = (await serve(site, { isolated: false })) as Server;
  const browser = (await openBrowser(chromium)) as Browser;
  closeAfter(t, browser, server);
  const page = await opened(browser.context, `${server.origin}/`);
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
});

test("`wasmsand playground` serves the page", { skip: skipServer, timeout: 90_000 }, async (t) => {
  const server = (await startWasmsand(["playground", "--port", "0"])) as Server & { url: string };
  const browser = (await openBrowser(chromium)) as Browser;
  closeAfter(t, browser, server);
  const page = await opened(browser.context, server.url);
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
  const found = await page.request.get(server.url);
  assert.match(found.headers()["content-security-policy"]!, /script-src 'self';/);
  await typed(page, "echo py$((1+1))thon", "\npy2thon\n");
});

test("`wasmsand playground --allow-net` lets programs reach a host", { skip: skipServer, timeout: 90_000 }, async (t) => {
  const outside = await startOutside();
  t.after(() => outside.close());
  const rule = `web.test:${outside.plainPort}`;
  const server = (await startWasmsand(["playground", "--port", "0", "--allow-net", rule])) as Server & { url: string };
  const flags = ["--host-resolver-rules=MAP web.test 127.0.0.1"];
  const browser = (await openBrowser(chromium, { flags })) as Browser;
  closeAfter(t, browser, server);
  const page = await opened(browser.context, server.url);
  await typed(page, `curl -s http://${rule}/from-the-page`, "GET /from-the-page 0");
  assert.match((await page.textContent("#network"))!, new RegExp(`may reach ${rule}`));
  await page.reload(); // now through the service worker
  await shows(page, "user@sandbox:~$");
  await typed(page, `curl -s http://${rule}/again`, "GET /again 0");
});

describe("the playground of `wasmsand serve`", { skip: skipServer }, () => {
  let server: Server;
  let browser: Browser;
  let address: string;

  before(async () => {
    server = await startWasmsand(["serve", "--port", "0", "--playground"]);
    address = await playgroundAddress(server);
    browser = await openBrowser(chromium);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  commonTests(() => opened(browser.context, address));

  test("the token leaves the address, and can be typed instead", { timeout: 90_000 }, async () => {
    const [place, token] = address.split("#token=") as [string, string];
    const first = await opened(browser.context, address);
    assert.equal(first.url(), place);
    await first.close();
    const page = await visited(browser.context);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(place);
    for (const wrong of ["a token that is wrong", "another-wrong-token"]) {
      await page.fill("#token", wrong);
      await page.press("#token", "Enter");
      await page.waitForFunction(
        () => document.querySelector<HTMLInputElement>("#token")!.validationMessage !== "",
      );
    }
    await page.fill("#token", token);
    await page.press("#token", "Enter");
    await shows(page, "user@sandbox:~$");
    assert.deepEqual(asked.filter((url) => url.includes(token)), []);
    await page.close();
  });

  test("starting anew kills the sandbox", { timeout: 90_000 }, async () => {
    const page = await opened(browser.context, address);
    page.on("dialog", (dialog) => void dialog.accept());
    const id = () => page.evaluate(() => sessionStorage.getItem("wasmsand-sandbox"));
    const before = await id();
    await typed(page, "touch old; echo made", "\nmade\n");
    await page.click("#reset");
    await page.waitForFunction((old) => sessionStorage.getItem("wasmsand-sandbox") !== old, before);
    await shows(page, "user@sandbox:~$");
    await typed(page, "ls; echo listed", "listed\n");
    const token = address.split("#token=")[1]!;
    const gone = await page.request.get(`${new URL(address).origin}/v1/sandboxes/${before}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(gone.status(), 404);
    await page.close();
  });
});
