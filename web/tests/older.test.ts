// The tests of node.test.ts under an older Node.
//
// Rules: scripts/test.mjs says in WASMSAND_OLDER_NODE where it is. Each test there is a test here. To save
// time, node.test.ts runs a part of its cases under an older Node; WASMSAND_ALL_CASES=1 runs all.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";

const root = new URL("../../", import.meta.url).pathname;
const older = process.env.WASMSAND_OLDER_NODE;
const skip = older ? false : "this machine has no Node that is older than 24";
const version = older ? spawnSync(older, ["--version"], { encoding: "utf8" }).stdout.trim() : "";
const TIMEOUT_MS = 900_000;

interface Outcome {
  name: string;
  error?: string;
}

/** What scripts/outcome-lines.mjs writes; other lines are output of the tests. */
function outcomeOf(line: string): Outcome | null {
  try {
    return (JSON.parse(line) as { outcome?: Outcome }).outcome ?? null;
  } catch {
    return null;
  }
}

test(`under an older Node ${version}`, { skip, timeout: TIMEOUT_MS }, async (t) => {
  const reporter = `${root}scripts/outcome-lines.mjs`;
  // With it, the other Node would take itself for a part of these tests, and not use the reporter.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(older!, [`--test-reporter=${reporter}`, "dist/tests/node.test.js"], {
    cwd: root, env, stdio: ["ignore", "pipe", "inherit"], signal: t.signal,
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("exit", resolve).on("error", reject);
  });
  let [count, output] = [0, ""];
  for await (const line of createInterface({ input: child.stdout })) {
    const outcome = outcomeOf(line);
    if (!outcome) {
      output = `${output}${line}\n`.slice(-4000);
      continue;
    }
    count++;
    await t.test(outcome.name, () => assert.equal(outcome.error, undefined));
  }
  const code = await ended;
  assert.ok(count > 100, `only ${count} tests ran: ${output}`);
  assert.equal(code, 0, output);
});
