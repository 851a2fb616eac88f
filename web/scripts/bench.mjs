// Measures a sandbox in Chromium and in Node, and other in-page interpreters beside it.
//
// Usage: npm run bench [-- --own]. `--own` leaves the others out. It builds what is missing, and prints
// the table of docs/guides/browser.md. Rules: medians of several runs, in
// milliseconds of wall-clock time. A first visit has empty caches. Transferred bytes are counted as
// compressed by gzip. The cost of a system call is the difference of two loops of `read`, because
// its result is never known without the kernel. The others are pinned: bench/package-lock.json, and
// Pyodide as we use it.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { findChromium, openBrowser } from "./browser.mjs";
import { serve } from "./static-server.mjs";

const web = new URL("..", import.meta.url).pathname;
const ROWS = [
  ["`echo hi`", "echo hi", 15],
  ["a pipeline of three", "seq 100 | sort -n | tail -1", 10],
  ["`git --version`", "git --version", 5],
  ["`python3 -c 'print(1)'`", "python3 -c 'print(1)'", 5],
  ["20 subshells", "for i in {1..20}; do ( : ); done", 5],
  ["a loop of 20,000 in the shell", "for ((i = 0; i < 20000; i++)); do :; done", 3],
];
const CALLS = "a system call (20,000 of `dd`)";
const READY = "ready for commands";
const TRANSFER = "transferred for all rows, MB";
const FIRST_TRANSFER = "transferred for the first command, MB";

/** Runs in the page too, so it uses nothing of this file. */
async function measure({ rows, module, kind, calls }) {
  const now = () => performance.now();
  const openers = {
    wasmsand: async ({ Sandbox }) => {
      const sandbox = await Sandbox.create();
      return { run: (command) => sandbox.run(command), close: () => sandbox.destroy(), hasCalls: true };
    },
    "just-bash": async ({ Bash }) => {
      const bash = new Bash({ executionLimits: { maxLoopIterations: 1_000_000 } });
      return { run: (command) => bash.exec(command), close: () => {} };
    },
    pyodide: async ({ loadPyodide }) => {
      const python = await loadPyodide({ stdout: () => {} });
      const run = async (command) => {
        const code = /^python3 -c '(.*)'$/.exec(command)?.[1];
        if (!code) return { exitCode: 127 };
        python.runPython(code);
        return { exitCode: 0 };
      };
      return { run, close: () => {} };
    },
  };
  const found = {};
  let began = now();
  const { run, close, hasCalls } = await openers[kind](await import(module));
  found["ready for commands"] = now() - began;
  for (const [name, command, count] of rows) {
    const times = [];
    for (let number = 0; number <= count; number++) {
      began = now();
      const { exitCode } = await run(command);
      if (exitCode !== 0) break;
      times.push(now() - began);
    }
    if (times.length <= count) continue;
    found[`${name}, first`] = times.shift();
    found[name] = times.sort((a, b) => a - b)[times.length >> 1];
  }
  if (hasCalls) {
    const bytes = (count) => `dd if=/dev/zero of=/dev/null bs=1 count=${count} 2>/dev/null`;
    const spent = [];
    for (const count of [2000, 12000]) {
      began = now();
      await run(bytes(count));
      spent.push(now() - began);
    }
    found[calls] = (spent[1] - spent[0]) / 20_000;
  }
  close();
  return found;
}

const PEERS = [
  { kind: "wasmsand", title: "wasmsand", module: "/dist/browser/index.js", first: 0 },
  {
    kind: "wasmsand", title: "wasmsand (not isolated)", module: "/dist/browser/index.js", first: 0,
    isolated: false,
  },
  { kind: "just-bash", title: "just-bash", module: "/dist/bench/just-bash.js", first: 0 },
  { kind: "pyodide", title: "Pyodide alone", module: "/node_modules/pyodide/pyodide.mjs", first: 3 },
];

const withoutNode = {
  name: "without-node",
  setup(building) {
    building.onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "without-node" }));
    building.onLoad({ filter: /.*/, namespace: "without-node" }, () => ({
      contents: "module.exports = {};",
    }));
  },
};

/** Bundle the others for a page. */
async function prepareOthers() {
  if (!existsSync(`${web}bench/node_modules/just-bash`)) {
    const done = spawnSync("npm", ["ci", "--ignore-scripts", "--silent"], { cwd: `${web}bench` });
    if (done.status !== 0) throw new Error("npm could not install the packages of bench/");
  }
  await build({
    bundle: true, minify: true, format: "esm", platform: "browser", target: "es2022",
    stdin: { contents: 'export { Bash } from "just-bash/browser";', resolveDir: `${web}bench` },
    outfile: `${web}dist/bench/just-bash.js`, logLevel: "error",
    plugins: [withoutNode], // it imports node:zlib, for gzip and gunzip
  });
}

function versionOf({ kind, title }) {
  const place = { "just-bash": "bench/node_modules/just-bash/", pyodide: "node_modules/pyodide/" }[kind] ?? "";
  return `${title} ${JSON.parse(readFileSync(`${web}${place}package.json`, "utf8")).version}`;
}

function gzipped(sent) {
  return sent.reduce((sum, { path, bytes }) => {
    if (path.endsWith(".bin")) return sum + bytes;
    return sum + gzipSync(readFileSync(join(web, path))).length;
  }, 0);
}

/** Two visits of a browser with empty caches; before them, one that only runs a first command. */
async function inChromium(chromium, peer) {
  const { kind, module, first, isolated = true } = peer;
  const server = await serve(web, { isolated });
  const visit = async (browser, rows) => {
    const page = await browser.context.newPage();
    await page.goto(`${server.origin}/tests/empty.html`);
    server.sent.length = 0;
    const found = await page.evaluate(measure, { rows, module, kind, calls: CALLS });
    await page.close();
    return { ...found, [TRANSFER]: gzipped(server.sent) / 1e6 };
  };
  const alone = await openBrowser(chromium);
  const [name, command] = ROWS[first];
  const atFirst = await visit(alone, [[name, command, 0]]);
  await alone.close();
  const browser = await openBrowser(chromium);
  const title = versionOf(peer);
  const columns = {};
  for (const when of ["first visit", "second visit"]) {
    columns[`${title}, ${when}`] = await visit(browser, ROWS);
  }
  columns[`${title}, first visit`][FIRST_TRANSFER] = atFirst[TRANSFER];
  await browser.close();
  await server.close();
  return columns;
}

function cell(name, value) {
  if (value === undefined) return "-";
  return value.toFixed(name === CALLS ? 4 : name.includes("MB") ? 1 : value < 10 ? 2 : 0);
}

function must(...words) {
  const done = spawnSync(process.execPath, words, { cwd: web, stdio: ["ignore", 2, 2] });
  if (done.status !== 0) process.exit(done.status ?? 1);
}
if (!existsSync(`${web}assets/index.json`)) must("scripts/make-assets.mjs");
must("scripts/build.mjs");

const columns = {
  [`${versionOf(PEERS[0])}, Node`]: await measure({
    rows: ROWS, module: `${web}dist/node/index.js`, kind: "wasmsand", calls: CALLS,
  }),
};
const chromium = findChromium();
if (chromium) {
  const own = process.argv.includes("--own");
  if (!own) await prepareOthers();
  for (const peer of own ? PEERS.filter(({ kind }) => kind === "wasmsand") : PEERS) {
    Object.assign(columns, await inChromium(chromium, peer));
  }
}
const names = Object.keys(columns);
console.log(`| milliseconds | ${names.join(" | ")} |\n|---|${"---|".repeat(names.length)}`);
const rows = [FIRST_TRANSFER, TRANSFER, READY];
for (const [name] of ROWS) rows.push(`${name}, first`, name);
for (const row of [...rows, CALLS]) {
  console.log(`| ${row} | ${names.map((name) => cell(row, columns[name][row])).join(" | ")} |`);
}
process.exit(0);
