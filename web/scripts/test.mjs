// Runs the tests: node scripts/test.mjs [node] [older] [server] [browser] [lacking] [playground] [differential] [differential-node] [firefox] [packed] [soak] [-- arguments of node --test].
//
// Rules: two files of tests run at a time. The tests need Node 24; if this one is older, the npm package
// `node` has a newer one, and the tests of Node run under this one too. The tests of the browser are
// skipped, with a message, if there is no Chromium and none can be had.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { build } from "esbuild";
import { node24 } from "./node24.mjs";

const KINDS = [
  "node", "older", "server", "browser", "lacking", "playground", "differential", "differential-node", "firefox",
  "packed", "soak",
];
/** Files of tests that run at a time. A program and its kernel mostly wait for each other, so that one file
 *  leaves a part of two cores idle. */
const AT_ONCE = 2;

process.chdir(new URL("..", import.meta.url).pathname);
const words = process.argv.slice(2);
const split = words.includes("--") ? words.indexOf("--") : words.length;
const kinds = words.slice(0, split);
const further = words.slice(split + 1);

function must(command, ...words) {
  const done = spawnSync(command, words, { stdio: "inherit" });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

const node = node24();
if (!existsSync("assets/index.json")) must(node, "scripts/make-assets.mjs");
must(node, "scripts/build.mjs");
must(node, "scripts/make-site.mjs");
await build({
  bundle: true, format: "esm", platform: "node", packages: "external", outdir: "dist/tests",
  entryPoints: KINDS.map((kind) => `tests/${kind}.test.ts`), logLevel: "warning",
  external: ["../../scripts/*"],
});
await build({
  bundle: true, format: "esm", platform: "browser", outdir: "dist/tests", logLevel: "warning",
  entryPoints: ["tests/page.ts"], external: ["/dist/*"],
});
const files = (kinds.length ? kinds : KINDS).map((kind) => `dist/tests/${kind}.test.js`);
const older = node === process.execPath ? "" : process.execPath;
const done = spawnSync(node, ["--test", `--test-concurrency=${AT_ONCE}`, ...further, ...files], {
  stdio: "inherit",
  env: {
    WASMSAND_OLDER_NODE: older, ...process.env, NODE_EXTRA_CA_CERTS: "tests/server-certificate.pem",
  },
});
process.exit(done.status ?? 1);
