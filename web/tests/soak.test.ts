// A short form of the soak test: each operation once or twice, and one reload.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("a page that is reloaded goes on, and nothing is left over", { timeout: 240_000 }, () => {
  const script = new URL("../../scripts/soak.mjs", import.meta.url).pathname;
  const done = spawnSync(process.execPath, [script, "--seconds", "1"], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stdout + done.stderr);
  assert.match(done.stdout, /soak: (passed|skipped)/);
});
