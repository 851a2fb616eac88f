// Takes pictures of the playground, in desktop and phone sizes, light and dark: screenshots/*.png

import { mkdirSync } from "node:fs";
import { findChromium, openBrowser } from "./browser.mjs";
import { serve } from "./static-server.mjs";

const web = new URL("..", import.meta.url).pathname;
const SHOTS = [
  { name: "desktop-light", width: 1280, height: 800, colorScheme: "light", tab: "files" },
  { name: "desktop-dark", width: 1280, height: 800, colorScheme: "dark", tab: "python" },
  { name: "phone", width: 390, height: 844, colorScheme: "light", tab: "examples" },
];

const chromium = findChromium();
if (!chromium) process.exit(1);
mkdirSync(`${web}screenshots`, { recursive: true });
const server = await serve(`${web}site`);
for (const { name, width, height, colorScheme, tab } of SHOTS) {
  const browser = await openBrowser(chromium, { context: { viewport: { width, height }, colorScheme } });
  const page = await browser.context.newPage();
  page.on("console", (message) => console.error(`page: ${message.text()}`));
  page.on("pageerror", (error) => console.error(`page: ${error}`));
  await page.goto(`${server.origin}/`);
  const shows = (text) => page.waitForFunction((t) => globalThis.playground?.screen().includes(t), text);
  await shows("~$");
  await page.click("#tab-examples");
  await page.click(".example:nth-child(1)");
  await page.click(".example:nth-child(2)");
  await shows("5050");
  await page.click(".example:nth-child(3)");
  await shows("1 file changed");
  await page.click(`#tab-${tab}`);
  if (tab === "python") {
    await page.click("#run-cell");
    await page.waitForFunction(() => document.querySelector("#results")?.textContent.includes("285"));
  }
  await page.waitForTimeout(2500);
  await page.screenshot({ path: `${web}screenshots/${name}.png` });
  console.log(`screenshots/${name}.png: ${await page.textContent("#status")}`);
  await browser.close();
}
await server.close();
