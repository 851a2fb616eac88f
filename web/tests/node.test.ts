// The cases under Node.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { AssetIndex, Layout } from "../src/assets/layout.js";
import { cases, engineCases } from "./cases/index.js";
import { differentialScripts } from "./cases/scripts.js";
import { startOutside } from "./outside-server.js";
import { nativeRun } from "./native.js";
import "./assets.js";
import "./exceptions.js";
import "./tls.js";
import { Worlds } from "./world.js";

const root = new URL("../../", import.meta.url);
const api = (await import(new URL("dist/node/index.js", root).href)) as typeof import("../src/index.js");
const storePlace = mkdtempSync(join(tmpdir(), "wasmsand-states-"));
const outside = await startOutside();
const names = ["web.test", "other.web.test"];
const hosts = Object.fromEntries(names.map((name) => [name, "127.0.0.1"]));
/** WASMSAND_DRIVER=suspending runs the cases with programs in the kernel's worker. */
const driver = process.env.WASMSAND_DRIVER as "workers" | "suspending" | undefined;
const worlds = Worlds.withDriver(api, storePlace, { ...outside, hosts }, driver);

/** Under an older Node, only cases that depend on the engine run, to save time; WASMSAND_ALL_CASES=1 runs all. */
const isOlder = Number.parseInt(process.versions.node) < 24;
const chosen = isOlder && !process.env.WASMSAND_ALL_CASES ? engineCases : cases;
for (const one of chosen) test(one.name, { timeout: one.timeoutMs ?? 120_000 }, () => worlds.run(one));
for (const script of differentialScripts) {
  test(`as native bash: ${script}`, { timeout: 60_000 }, async () => {
    assert.deepEqual(await worlds.script(script), nativeRun(script));
  });
}

test("memory of programs that have ended is given back", { timeout: 180_000 }, async () => {
  const sandbox = await api.Sandbox.create();
  const runs = async (count: number) => {
    for (let left = count; left; left--) {
      await sandbox.run("python3 -c 'x = bytes(8_000_000)'");
      await sandbox.restore("first");
    }
  };
  await sandbox.snapshot("first");
  await runs(15);
  const before = process.memoryUsage().rss;
  await runs(40); // more than 1 GB of memories
  const grown = (process.memoryUsage().rss - before) / 1e6;
  assert.ok(grown < 400, `it grew by ${grown} MB`);
  sandbox.destroy();
});

test("the package can be required", { timeout: 60_000 }, async () => {
  const required = createRequire(import.meta.url)(new URL("dist/node/index.cjs", root).pathname);
  const sandbox = await (required as typeof api).Sandbox.create();
  assert.equal((await sandbox.run("echo required")).stdout, "required\n");
  sandbox.destroy();
});

test("the ordinary start of Python works too", { timeout: 120_000 }, async () => {
  const sandbox = await api.Sandbox.create({ fastStart: false });
  assert.equal(sandbox.boot.fromSnapshot, false);
  assert.equal((await sandbox.run("echo hi")).stdout, "hi\n");
  sandbox.destroy();
});

test("wasmDir adds every program of a directory", { timeout: 60_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "wasmsand-programs-"));
  const image = new URL("../src/wasmsand/_image/", root).pathname;
  cpSync(`${image}cal.wasm`, join(place, "mycal.wasm"));
  cpSync(`${image}rev.wasm`, join(place, "true-cmd.wasm"));
  const sandbox = await api.Sandbox.create({ wasmDir: place });
  const result = await sandbox.run("mycal 1 2024 | head -1; echo abc | /usr/local/bin/true");
  assert.equal(result.stdout.trim().split(/\s+/).join(" "), "January 2024 cba");
  sandbox.destroy();
  rmSync(place, { recursive: true });
});

test("a directory of this machine is shown, and nothing outside of it", { timeout: 120_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "wasmsand-mount-"));
  const secret = mkdtempSync(join(tmpdir(), "wasmsand-secret-"));
  writeFileSync(join(secret, "key"), "secret");
  mkdirSync(join(place, "sub"));
  writeFileSync(join(place, "sub", "a.txt"), "text\n");
  writeFileSync(join(place, "large"), Buffer.alloc(3_000_000, "l"));
  symlinkSync(secret, join(place, "out"));
  symlinkSync(join(secret, "key"), join(place, "out-file"));
  symlinkSync("sub/a.txt", join(place, "in-file"));
  const mounts = { "/mnt/data": place, "/mnt/own": { source: place, mode: "overlay" as const } };
  const sandbox = await api.Sandbox.create({ mounts });
  const run = (command: string) => sandbox.run(command);
  const read = await run("cd /mnt/data; cat sub/a.txt in-file; wc -c < large; ls");
  assert.equal(read.stdout, "text\ntext\n3000000\nin-file\nlarge\nout\nout-file\nsub\n");
  assert.notEqual((await run("cat /mnt/data/out/key || cat /mnt/data/out-file")).exitCode, 0);
  assert.notEqual((await run("echo x > /mnt/data/sub/a.txt || touch /mnt/data/new")).exitCode, 0);
  const own = await run("cd /mnt/own; echo more >> sub/a.txt; rm large; cat sub/a.txt; ls");
  assert.equal(own.stdout, "text\nmore\nin-file\nout\nout-file\nsub\n");
  assert.equal(readFileSync(join(place, "sub", "a.txt"), "utf8"), "text\n");
  assert.equal(new TextDecoder().decode(await sandbox.readFile("/mnt/data/sub/a.txt")), "text\n");
  writeFileSync(join(place, "sub", "a.txt"), "changed\n");
  assert.equal((await run("cat /mnt/data/sub/a.txt")).stdout, "changed\n");
  // A directory that becomes a link to the outside is not followed.
  renameSync(join(place, "sub"), join(place, "was"));
  symlinkSync(secret, join(place, "sub"));
  assert.doesNotMatch((await run("cat /mnt/data/sub/key")).stdout, /secret/);
  await assert.rejects(sandbox.mount("/mnt/no", "/nowhere/at/all"), api.MountError);
  await assert.rejects(sandbox.mount("/proc", place), api.InvalidArgumentError);
  await assert.rejects(sandbox.mount("/mnt/rw", place, { readOnly: false }), api.MountError);
  await sandbox.mount("/mnt/again", place, { readOnly: true });
  assert.equal((await run("cat /mnt/again/was/a.txt")).stdout, "changed\n");
  await sandbox.unmount("/mnt/data");
  assert.equal((await run("ls /mnt/data")).stdout, "");
  sandbox.destroy();
  for (const directory of [place, secret]) rmSync(directory, { recursive: true });
});

test("L183: an older Node is refused, and the message says what is needed", { timeout: 60_000 }, () => {
  const code = `
    WebAssembly.validate = () => false; // as Node 20 says of the module that is tried
    const { Sandbox } = await import(${JSON.stringify(new URL("dist/node/index.js", root).href)});
    await Sandbox.create().catch((error) => console.log(error.name, error.message));`;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
  assert.match(done.stdout, /^HostError .*use Node 20 or newer/);
});

test("V8 does not end the process if it discards code in a call of WebAssembly", { timeout: 60_000 }, () => {
  // An exported function returns null, an object, after a call of the host that discards its caller's code.
  const bytes = [
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 8, 2, 0x60, 0, 0, 0x60, 0, 1, 0x6f, 2, 7, 1, 1, 0x65, 1, 0x66, 0, 0,
    3, 2, 1, 1, 7, 5, 1, 1, 0x67, 0, 1, 10, 8, 1, 6, 0, 0x10, 0, 0xd0, 0x6f, 0x0b,
  ];
  const code = `
    const { Sandbox } = await import(${JSON.stringify(new URL("dist/node/index.js", root).href)});
    (await Sandbox.create()).destroy();
    let discards = false;
    const f = () => { if (discards) %DeoptimizeFunction(hot); };
    const module = new WebAssembly.Module(new Uint8Array(${JSON.stringify(bytes)}));
    const { g } = new WebAssembly.Instance(module, { e: { f } }).exports;
    function hot() { return g(); }
    %PrepareFunctionForOptimization(hot);
    hot();
    %OptimizeFunctionOnNextCall(hot);
    hot();
    discards = true;
    console.log(hot());`;
  const done = spawnSync(
    process.execPath, ["--allow-natives-syntax", "--input-type=module", "-e", code], { encoding: "utf8" },
  );
  assert.deepEqual([done.stdout, done.status], ["null\n", 0], done.stderr.slice(0, 500));
});

test("missing assets are named", { timeout: 60_000 }, async () => {
  await assert.rejects(api.Sandbox.create({ assets: "/nowhere" }), (error: Error) => {
    assert.ok(error instanceof api.AssetError);
    assert.match(error.message, /\/nowhere\/index\.json.*option 'assets'/);
    return true;
  });
});

test("a damaged asset is refused, and the sandbox goes on", { timeout: 120_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "wasmsand-assets-"));
  cpSync(new URL("assets", root).pathname, place, { recursive: true });
  const asset = (hash: string) => join(place, `${hash}.bin`);
  const index = JSON.parse(readFileSync(join(place, "index.json"), "utf8")) as AssetIndex;
  const layout = JSON.parse(gunzipSync(readFileSync(asset(index.layout))).toString()) as Layout;
  const form = (name: string) => {
    const file = layout.files.find((one) => one.name === `${name}.wasm`) as { asset: string };
    return asset(layout.forms[file.asset]!);
  };
  cpSync(form("bash"), form("git"));
  const sandbox = await api.Sandbox.create({ assets: place });
  const result = await sandbox.run("git --version; echo on");
  assert.match(result.stderr, /git/);
  assert.equal(result.stdout, "on\n");
  sandbox.destroy();
  rmSync(place, { recursive: true });
});

test("a process that has used a sandbox ends by itself", { timeout: 60_000 }, () => {
  const code = `
    const { Sandbox } = await import(${JSON.stringify(new URL("dist/node/index.js", root).href)});
    const sandbox = await Sandbox.create();
    console.log((await sandbox.run("echo bye")).stdout.trim());`;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    encoding: "utf8", timeout: 50_000,
  });
  assert.deepEqual([done.status, done.stdout], [0, "bye\n"], done.stderr.slice(-500));
});

after(async () => {
  await worlds.end();
  await outside.close();
  rmSync(storePlace, { recursive: true });
});
