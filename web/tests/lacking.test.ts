// What a page may lack: the message says what to do, or the sandbox does without.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";

// @ts-expect-error a script without types
import { findChromium, openBrowser } from "../../scripts/browser.mjs";
// @ts-expect-error a script without types
import { serve } from "../../scripts/static-server.mjs";

const root = new URL("../../", import.meta.url).pathname;
const chromium = findChromium() as string | null;
const skip = chromium ? false : "no Chromium, and apt-get cannot install it";
/** A name that is not localhost, so that the page is not in a secure context. */
const INSECURE = "insecure.test";

interface Server {
  origin: string;
  close(): Promise<void>;
}
interface Outcome {
  name: string;
  message: string;
  errno?: string;
}
interface Lack {
  isolated?: boolean;
  change?: (path: string) => string | null;
  hold?: (path: string) => Promise<unknown>;
  prepare?: (page: Page, origin: string) => Promise<unknown>;
  address?: (origin: string) => string;
}

/** Runs in the page. */
async function creation(): Promise<Outcome> {
  try {
    const sandbox = await (globalThis as any).api.Sandbox.create();
    const { stdout } = await sandbox.run("echo $((6*7))");
    sandbox.destroy();
    return { name: "none", message: `it says ${stdout.trim()}` };
  } catch (error) {
    const { name, message, errno } = error as Outcome;
    return { name, message, ...(errno ? { errno } : {}) };
  }
}

/** Runs in the page. */
async function keeping(bytes: number): Promise<Outcome> {
  try {
    const store = await (globalThis as any).api.StateStore.open("lacking");
    await store.put("state", new Uint8Array(bytes).fill(7));
    return { name: "none", message: "it was kept" };
  } catch (error) {
    const { name, message, errno } = error as Outcome;
    return { name, message, ...(errno ? { errno } : {}) };
  }
}

/** Runs in the page: what other programs do while one waits for bytes of the image. `hold` says
 *  whether the server answers. */
async function waiting(commands: string[]): Promise<Outcome> {
  const { api, hold } = globalThis as any;
  const sandbox = await api.Sandbox.create();
  const warm = "echo $(echo $(echo a | cat)); ls / | head -1";
  await sandbox.run(warm);
  await hold(true);
  const slow = commands.map((command) => sandbox.run(command));
  let ended = 0;
  for (const run of slow) void run.then(() => ended++);
  const others = [];
  for (let round = 0; round < 3; round++) others.push((await sandbox.run(warm)).stdout);
  const early = ended;
  await hold(false);
  const codes = (await Promise.all(slow)).map(({ exitCode }: { exitCode: number }) => exitCode);
  sandbox.destroy();
  return { name: "none", message: JSON.stringify({ early, others: new Set(others).size, codes }) };
}

/** Runs in the page: whether a program ends while the page waits for a file of the image. */
async function pageReading(): Promise<Outcome> {
  const { api, hold } = globalThis as any;
  const sandbox = await api.Sandbox.create();
  await sandbox.run("echo warm");
  await hold(true);
  const order: string[] = [];
  await Promise.all([
    sandbox.readFile("/usr/libexec/git-core/git-filter-branch").then(() => order.push("the page")),
    sandbox.run("echo on").then(() => order.push("the program")),
  ]);
  sandbox.destroy();
  return { name: "none", message: `${order[1]} came second` };
}

describe("what a page may lack", { skip }, () => {
  let browser: { context: BrowserContext; close(): Promise<void> };

  before(async () => {
    browser = await openBrowser(chromium, {
      flags: [`--host-resolver-rules=MAP ${INSECURE} 127.0.0.1`],
    });
  });
  after(() => browser?.close());

  /** What `act` finds on a page of an origin of its own, which has no storage yet. */
  async function found<Argument>(
    lack: Lack, act: (argument: Argument) => Promise<Outcome>, argument?: Argument,
  ): Promise<Outcome> {
    const server = (await serve(root, lack)) as Server;
    const page = await browser.context.newPage();
    try {
      await lack.prepare?.(page, server.origin);
      await page.goto(`${lack.address?.(server.origin) ?? server.origin}/tests/page.html`);
      await page.waitForFunction("globalThis.ready");
      return await page.evaluate(act as any, argument as any);
    } finally {
      await page.close();
      await server.close();
    }
  }

  const create = (lack: Lack) => found(lack, creation);
  const withScript = (script: string) => ({
    prepare: (page: Page) => page.addInitScript(script),
  });
  const withQuota = (quotaSize: number) => ({
    prepare: async (page: Page, origin: string) => {
      const session = await browser.context.newCDPSession(page);
      await session.send("Storage.overrideQuotaForOrigin", { origin, quotaSize });
    },
  });

  /** The page cannot suspend programs either. */
  const withoutSuspending = (script = "") => withScript(`delete WebAssembly.Suspending; ${script}`);

  test("cross-origin isolation: programs run in the kernel's worker", { timeout: 60_000 }, async () => {
    assert.equal((await create({ isolated: false })).message, "it says 42");
  });

  test("L181: isolation and stack switching: the message names the headers", { timeout: 60_000 }, async () => {
    const error = await create({ isolated: false, ...withoutSuspending() });
    assert.equal(error.name, "HostError");
    assert.match(error.message, /Cross-Origin-Opener-Policy: same-origin/);
    assert.match(error.message, /Cross-Origin-Embedder-Policy: require-corp/);
    assert.match(error.message, /WebAssembly\.Suspending \(Chrome or Edge 137\)/);
  });

  test("a secure context: the message names https", { timeout: 60_000 }, async () => {
    const error = await create({ address: (origin) => origin.replace("localhost", INSECURE) });
    assert.equal(error.name, "HostError");
    assert.match(error.message, /not in a secure context.*https, or from localhost/);
  });

  test("Atomics.waitAsync: programs run in the kernel's worker", { timeout: 60_000 }, async () => {
    assert.equal((await create(withScript("delete Atomics.waitAsync"))).message, "it says 42");
  });

  test("shared memory and stack switching: the message says so", { timeout: 60_000 }, async () => {
    for (const lost of ["globalThis.SharedArrayBuffer", "Atomics.waitAsync"]) {
      const error = await create(withoutSuspending(`delete ${lost}`));
      assert.equal(error.name, "HostError");
      assert.match(error.message, /SharedArrayBuffer or no Atomics\.waitAsync.*newer browser/);
    }
  });

  test("workers: the message names the age of the browser", { timeout: 60_000 }, async () => {
    const error = await create(withScript("delete globalThis.Worker"));
    assert.match(error.message, /needs workers and WebAssembly.*2025/);
  });

  test("final exception handling: the message names browsers", { timeout: 60_000 }, async () => {
    const error = await create(withScript("WebAssembly.validate = () => false"));
    assert.match(error.message, /final exception handling.*Chrome or Edge 137/);
  });

  test("an asset with its content: the asset is named", { timeout: 60_000 }, async () => {
    const other = join(root, "package.json");
    const error = await create({ change: (path) => (path.endsWith(".bin") ? other : path) });
    assert.equal(error.name, "AssetError");
    assert.match(error.message, /\.bin.*does not have the content that its name says/);
  });

  test("assets at all: the message names the option", { timeout: 60_000 }, async () => {
    const error = await create({ change: (path) => (path.includes("/assets/") ? null : path) });
    assert.equal(error.name, "AssetError");
    assert.match(error.message, /the server says 404.*option 'assets'/);
  });

  test("a script of its workers: the message names it", { timeout: 60_000 }, async () => {
    for (const script of ["asset-worker.js", "guest-worker.js"]) {
      const change = (path: string) => (path.endsWith(`/${script}`) ? null : path);
      const error = await create({ change });
      assert.equal(error.name, "SandboxCrashedError");
      assert.match(error.message, new RegExp(`the script ${script} could not be loaded`));
    }
  });

  test("a cache: everything works without it", { timeout: 60_000 }, async () => {
    const place = mkdtempSync(join(tmpdir(), "wasmsand-denied-"));
    const worker = join(place, "asset-worker.js");
    const denied = "{ open: () => Promise.reject(new DOMException('denied', 'SecurityError')) }";
    const original = readFileSync(join(root, "dist/browser/asset-worker.js"), "utf8");
    const prefix = `Object.defineProperty(globalThis, "caches", { value: ${denied} });\n`;
    writeFileSync(worker, prefix + original);
    const change = (path: string) => (path.endsWith("asset-worker.js") ? worker : path);
    assert.equal((await create({ change })).message, "it says 42");
    rmSync(place, { recursive: true });
  });

  test("room in a cache: everything works without it", { timeout: 60_000 }, async () => {
    assert.equal((await create(withQuota(100_000))).message, "it says 42");
  });

  for (const isolated of [true, false]) {
    const where = isolated ? "isolated" : "not isolated";
    test(`a quick server: only those wait who read (${where})`, { timeout: 60_000 }, async () => {
      let release = () => {};
      let held: Promise<void> | null = null;
      const commands = ["cat /usr/libexec/git-core/git-filter-branch", "ls /usr/lib/python/black"];
      const lack: Lack = {
        isolated,
        hold: async (path) => (path.endsWith(".bin") ? held : undefined),
        prepare: (page) => page.exposeFunction("hold", (wanted: boolean) => {
          release();
          held = wanted ? new Promise<void>((resolve) => (release = resolve)) : null;
        }),
      };
      const { message } = await found(lack, waiting, commands);
      assert.deepEqual(JSON.parse(message), { early: 0, others: 1, codes: [0, 0] });
    });
  }

  test("L182: what the page reads of the image keeps programs waiting", { timeout: 60_000 }, async () => {
    let release = () => {};
    let held: Promise<void> | null = null;
    const lack: Lack = {
      hold: async (path) => (path.endsWith(".bin") ? held : undefined),
      prepare: (page) => page.exposeFunction("hold", (wanted: boolean) => {
        release();
        held = wanted ? new Promise<void>((resolve) => (release = resolve)) : null;
        // While the kernel waits, the page cannot ask for the end.
        if (wanted) setTimeout(() => release(), 3000);
      }),
    };
    assert.equal((await found(lack, pageReading)).message, "the program came second");
  });

  test("the right to store: the message says how to give it", { timeout: 60_000 }, async () => {
    const denied = "Promise.reject(new DOMException('denied', 'SecurityError'))";
    const script = `StorageManager.prototype.getDirectory = () => ${denied}`;
    const error = await found(withScript(script), keeping, 1000);
    assert.deepEqual([error.name, error.errno], ["HostError", "EACCES"]);
    assert.match(error.message, /denies storage.*allow this site to store data/);
  });

  test("room for states: the message says what to delete", { timeout: 60_000 }, async () => {
    assert.equal((await found({}, keeping, 5_000_000)).message, "it was kept");
    const error = await found(withQuota(1_000_000), keeping, 5_000_000);
    assert.equal(error.errno, "ENOSPC");
    assert.match(error.message, /storage is full.*delete states/);
  });
});
