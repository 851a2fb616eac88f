// The cases with sandboxes of `wasmsand serve`, and what is particular to them.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { cases } from "./cases/index.js";
import { networkCases } from "./cases/network.js";
import { Worlds } from "./world.js";

// @ts-expect-error a script without types
import { missingServer, startWasmsand } from "../../scripts/wasmsand.mjs";

const root = new URL("../../", import.meta.url);
const api = (await import(new URL("dist/node/index.js", root).href)) as typeof import("../src/index.js");
const TOKEN = "a+token/with=16~characters";

/** Cases about what a page or Node has and a server's sandbox has not. */
const ELSEWHERE = [
  /^L\d+:/, // limitations of pages
  /a saved sandbox is loaded by another one/, // `load` is an option of `connect`, tested below
  /a program can import nothing of the page/,
  // A server bounds these by its engine, with other results (tests/engine, tests/limits).
  /a program of a guest is refused that has/, /a table of a guest has a bound/,
  /no more memory than the sandbox's limit/,
  /it loops before it starts/, // a server refuses modules with a start function
  /a store keeps states by name/, // has no sandbox
  /wrong options are refused/, // names of the server's options
];

/** The network of a server's sandbox has tests of its own, in Python. */
const NOWHERE = { plainPort: 0, securePort: 0, log: "", hosts: null };

interface Server {
  url: string;
  close(): Promise<void>;
}

describe("a sandbox of a server", { skip: missingServer() as string | false }, () => {
  let server: Server;
  let worlds: Worlds;
  const place = mkdtempSync(join(tmpdir(), "wasmsand-server-"));
  const connect = (options?: import("../src/index.js").SandboxOptions) =>
    api.Sandbox.connect(server.url, { token: TOKEN, ...(options as object) });

  before(async () => {
    const variables = { WASMSAND_TOKENS: `tester:${TOKEN}` };
    server = await startWasmsand(["serve", "--port", "0", "--isolation", "none"], variables);
    worlds = new Worlds(api, place, NOWHERE, connect);
  });
  after(async () => {
    await worlds?.end();
    await server?.close();
    rmSync(place, { recursive: true });
  });

  for (const one of cases) {
    if (networkCases.includes(one) || ELSEWHERE.some((pattern) => pattern.test(one.name))) continue;
    test(one.name, { timeout: 120_000 }, () => worlds.run(one));
  }

  test("it is found again by its id", { timeout: 60_000 }, async () => {
    const first = await connect();
    await first.writeFile("kept", "here");
    const id = first.id!;
    first.disconnect();
    await assert.rejects(first.run("true"), api.SandboxClosedError);
    const second = await api.Sandbox.connect(server.url, { token: TOKEN, id });
    assert.equal(await second.readText("kept"), "here");
    second.destroy();
  });

  test("a saved state makes a new sandbox", { timeout: 60_000 }, async () => {
    const first = await connect();
    await first.writeFile("kept", "here");
    const state = await first.save();
    assert.deepEqual(await first.listSnapshots(), []);
    const second = await api.Sandbox.connect(server.url, { token: TOKEN, state });
    assert.equal(await second.readText("kept"), "here");
    for (const sandbox of [first, second]) sandbox.destroy();
  });

  test("L200: a server's sandbox does not load a state", { timeout: 60_000 }, async () => {
    await assert.rejects((await worlds.sandbox()).load(new Uint8Array(1)), api.UnsupportedError);
  });

  test("a run without a time limit streams, so that no request waits long", { timeout: 60_000 }, async () => {
    const sandbox = await worlds.sandbox();
    const asked: string[] = [];
    const original = globalThis.fetch;
    globalThis.fetch = (input, init) => {
      asked.push(new URL(String(input)).pathname.split("/").at(-1)!);
      return original(input, init);
    };
    try {
      const result = await sandbox.run("cat; echo $A; exit 5", { timeoutMs: null, stdin: "in ", env: { A: "b" } });
      assert.deepEqual([result.stdout, result.exitCode], ["in b\n", 5]);
    } finally {
      globalThis.fetch = original;
    }
    assert.ok(asked.includes("commands") && !asked.includes("run"), String(asked));
  });

  test("a wrong token is refused with the server's reason", { timeout: 60_000 }, async () => {
    await assert.rejects(api.Sandbox.connect(server.url, { token: "wrong" }), (error: Error) => {
      assert.ok(error instanceof api.ServerError);
      assert.equal(error.status, 401);
      assert.match(error.message, /token is missing or unknown/);
      return true;
    });
  });

  test("a token in the URL is refused before anything is sent", { timeout: 60_000 }, async () => {
    for (const url of [`${server.url}/?token=${TOKEN}`, server.url.replace("//", "//x:y@")]) {
      await assert.rejects(api.Sandbox.connect(url), api.InvalidArgumentError);
    }
  });

  test("a server that is not there is named", { timeout: 60_000 }, async () => {
    await assert.rejects(api.Sandbox.connect("http://127.0.0.1:9"), (error: Error) => {
      assert.ok(error instanceof api.ServerError);
      assert.match(error.message, /127\.0\.0\.1:9 cannot be reached.*wasmsand serve/);
      return true;
    });
  });

  test("a killed sandbox ends its terminal and refuses commands", { timeout: 60_000 }, async () => {
    const sandbox = await connect();
    const terminal = await sandbox.pty();
    const twin = await api.Sandbox.connect(server.url, { token: TOKEN, id: sandbox.id! });
    twin.destroy();
    await assert.rejects(async () => {
      for (let tries = 0; tries < 100; tries++) await sandbox.run("true");
    }, api.SandboxClosedError);
    await terminal.ended.catch(() => {});
    sandbox.destroy();
  });
});
