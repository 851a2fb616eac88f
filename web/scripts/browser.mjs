// Chromium for tests, driven by playwright-core.
//
// Rules: the browser is Debian's; a profile of its own, which is removed at the end.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** The path of a browser; null if there is none and none can be installed. */
export function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const script = new URL("get-chromium.sh", import.meta.url).pathname;
  const found = spawnSync(script, { encoding: "utf8" });
  if (found.status !== 0) {
    console.error(found.stderr.trim());
    return null;
  }
  return found.stdout.trim();
}

/** Start it: a context, and `close`. */
export async function openBrowser(executablePath, options = {}) {
  const profile = options.profile ?? mkdtempSync(join(tmpdir(), "wasmsand-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath, headless: true, args: [...FLAGS, ...(options.flags ?? [])],
    ...options.context,
  });
  return {
    context,
    profile,
    close: async ({ keepProfile = false } = {}) => {
      await context.close();
      if (!keepProfile) rmSync(profile, { recursive: true, force: true });
    },
  };
}
