// Takes pictures of the playground, in desktop and phone sizes, light and dark: screenshots/*.png
//
// Rules: with `--server`, the sandbox is one of `wasmsand serve --playground`.

import { mkdirSync } from "node:fs";
import { findChromium, openBrowser } from "./browser.mjs";
import { serve } from "./static-server.mjs";
import { playgroundAddress, startWasmsand } from "./wasmsand.mjs";

const web = new URL("..", import.meta.url).pathname;
const SHOTS = [
  { name: "desktop-light", width: 1280, height: 800, colorScheme: "light", tab: "files" },
  { name: "desktop-editor", width: 1280, height: 800, colorScheme: "light", tab: "editor" },
  { name: "desktop-dark", width: 1280, height: 800, colorScheme: "dark", tab: "python" },
  { name: "desktop-vim", width: 1280, height: 800, colorScheme: "dark", tab: "examples", vim: true },
  { name: "phone", width: 390, height: 844, colorScheme: "light", tab: "examples", phone: true },
  { name: "phone-dark", width: 390, height: 844, colorScheme: "dark", tab: "python", phone: true },
];

async function visit(page, { tab, vim }, address) {
  await page.goto(address);
  const shows = (text) => page.waitForFunction((t) => globalThis.playground?.screen().includes(t), text);
  await shows("~$");
  await page.click("#tab-examples");
  const example = (title) => page.click(`.example:has-text("${title}")`);
  await example("Who am I?");
  await example("A pipeline");
  await shows("5050");
  await example("A git repository");
  await shows("1 file changed");
  if (tab === "python") {
    await example("A picture from Python");
    await page.waitForSelector("#results img");
    await page.click("#tab-examples");
    await example("A table from Python");
    await page.waitForSelector("#results iframe");
  }
  if (tab === "editor") {
    await page.keyboard.type("echo 'print(6 * 7)' > answer.py\n");
    await page.click("#tab-files");
    await page.click("#tree >> text=answer.py");
  }
  if (vim) {
    await example("An editor");
    await shows("-- INSERT --").catch(() => {});
    await shows("Hello from vim");
  }
  await page.click(`#tab-${tab}`);
  await page.waitForTimeout(2500);
}

const chromium = findChromium();
if (!chromium) process.exit(1);
mkdirSync(`${web}screenshots`, { recursive: true });
const withServer = process.argv.includes("--server");
const server = withServer
  ? await startWasmsand(["serve", "--port", "0", "--playground"]) : await serve(`${web}site`);
const address = withServer ? await playgroundAddress(server) : `${server.origin}/`;
for (const shot of SHOTS) {
  const { width, height, colorScheme, phone = false } = shot;
  const browser = await openBrowser(chromium, {
    context: { viewport: { width, height }, colorScheme, hasTouch: phone, isMobile: phone },
  });
  const page = await browser.context.newPage();
  page.on("console", (message) => console.error(`page: ${message.text()}`));
  page.on("pageerror", (error) => console.error(`page: ${error}`));
  page.setDefaultTimeout(60_000);
  await visit(page, shot, address);
  const name = `${withServer ? "server-" : ""}${shot.name}`;
  await page.screenshot({ path: `${web}screenshots/${name}.png` });
  console.log(`screenshots/${name}.png: ${await page.textContent("#status")}`);
  await browser.close();
}
await server.close();
