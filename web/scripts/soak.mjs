// A soak test in Chromium: npm run soak -- --minutes 30 (or --seconds 20) [--not-isolated]
//
// Commands, sessions, terminals, files, snapshots, runaway programs that are killed, and reloads of
// the page that go on with the saved state. Rules: figures are taken at rest, after each lap: memory
// of the page's process, its workers, the heap of its JavaScript, the memory of the kernel's Python.
// The test fails if an operation has a wrong result, or if a figure in the last third of the laps is
// much above that in the first: of all laps, and of those of one visit. With --not-isolated, the page
// has no shared memory, and programs run in the kernel's worker.

import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { findChromium, openBrowser } from "./browser.mjs";
import { serve } from "./static-server.mjs";

const MIB = 1024 * 1024;
/** How much the median of the last third of the laps may be above that of the first third. */
const GROWTH_PART = 0.15;
const GROWTH_MIB = 64;
/** What is watched, and by how many MiB it may grow beside the part above. */
const FIGURES = [["memory", GROWTH_MIB], ["heap", 8], ["kernel", 8]];
/** With fewer laps than this, growth is not judged: the first laps of a visit differ. */
const LAPS_LEAST = 6;
/** At rest: kernel, assets, and the workers that wait for the next programs. */
const MOST_WORKERS = 16;
/** Visits of the page, if there is time for a lap in each. */
const VISITS = 4;

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string" }, seconds: { type: "string" }, "not-isolated": { type: "boolean" },
  },
});
const isolated = !options["not-isolated"];
const seconds = options.seconds ? Number(options.seconds) : Number(options.minutes ?? 30) * 60;

/** How long collecting garbage may take. */
const COLLECT_MS = 10_000;

/** Runs in the page: one sandbox, which goes on with the state of the last visit. */
async function begin() {
  const { Sandbox, StateStore } = await import("/dist/browser/index.js");
  const store = await StateStore.open("soak");
  const kept = await store.get("state");
  const sandbox = await Sandbox.create({ timeoutMs: 60_000 });
  if (kept) await sandbox.load(kept);
  const count = kept ? Number(await sandbox.readText("laps")) : 0;
  globalThis.soak = { sandbox, store };
  return count;
}

/** Runs in the page: one lap. Returns how many operations it did, and the latest kill. */
async function lap(number) {
  const { sandbox, store } = globalThis.soak;
  let operations = 0;
  const expect = (found, wanted, what) => {
    operations++;
    if (JSON.stringify(found) !== JSON.stringify(wanted)) {
      throw new Error(`${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(wanted)}`);
    }
  };
  const output = async (command) => (await sandbox.run(command)).stdout;
  for (let again = 0; again < 5; again++) {
    expect(await output(`echo ${again}`), `${again}\n`, "echo");
    expect(await output("seq 200 | sort -rn | head -1"), "200\n", "a pipeline");
  }
  expect(await output("for i in {1..10}; do ( : ); done; echo forked"), "forked\n", "forks");
  expect(await output("python3 -c 'print(len(bytes(4_000_000)))'"), "4000000\n", "python3");
  expect(
    await output("rm -rf r; git init -q r && cd r && echo a > a && git add a && git status -s"),
    "A  a\n", "git",
  );
  const many = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => output(`sleep 0.05; echo ${n}`)));
  expect(many.join(""), "1\n2\n3\n4\n5\n6\n", "commands at the same time");

  const shell = await sandbox.shell();
  await shell.run(`cd /tmp; x=${number}`);
  expect((await shell.run("echo $PWD $x")).stdout, `/tmp ${number}\n`, "a shell session");
  await shell.close();
  const python = await sandbox.python();
  await python.run("x = list(range(1000))");
  expect((await python.run("sum(x)")).value, 499500, "a Python session");
  await python.close();

  let text = "";
  const decoder = new TextDecoder();
  const terminal = await sandbox.pty({ onData: (bytes) => (text += decoder.decode(bytes)) });
  await terminal.write("echo t$((1+1)); exit 3\n");
  expect((await terminal.ended).exitCode, 3, "a terminal");
  expect(text.includes("t2"), true, "the text of a terminal");

  let latest = 0;
  for (const runaway of ["while :; do :; done", "python3 -c 'while True: pass'"]) {
    const began = performance.now();
    const result = await sandbox.run(runaway, { timeoutMs: 700 });
    latest = Math.max(latest, performance.now() - began - 700);
    expect([result.timedOut, result.exitCode], [true, 124], "a runaway");
  }
  const started = await sandbox.start("sort /dev/zero");
  await started.kill();
  expect((await started.ended).timedOut, false, "a killed command");

  const file = new Uint8Array(2_000_000).fill(number);
  await sandbox.writeFile("large", file);
  expect((await sandbox.readFile("large")).length, file.length, "a file");
  const snapshot = await sandbox.snapshot();
  await sandbox.rm("large");
  await sandbox.restore(snapshot);
  expect((await sandbox.stat("large")).size, file.length, "a restored file");
  await sandbox.deleteSnapshot(snapshot);
  await sandbox.rm("large");
  await sandbox.writeFile("laps", String(number));
  await store.put("state", await sandbox.save());
  const { processes, kernelBytes } = await sandbox.usage();
  expect(processes, 0, "processes at rest");
  return { operations, latest, kernel: kernelBytes / 2 ** 20 };
}

// Figures.

/** The processes of pages among the descendants of this process, and the number of their workers. */
function pageProcesses() {
  const found = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) continue;
      if (!isBelow(pid, process.pid)) continue;
      const names = readdirSync(`/proc/${pid}/task`).map((task) =>
        readFileSync(`/proc/${pid}/task/${task}/comm`, "utf8"),
      );
      found.push({ pid, workers: names.filter((name) => name.startsWith("DedicatedWorker")).length });
    } catch {
      // it has ended
    }
  }
  return found;
}

function parentOf(pid) {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
}

function isBelow(pid, ancestor) {
  for (let at = Number(pid); at > 1; at = parentOf(at)) if (at === ancestor) return true;
  return false;
}

function residentMib(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return (Number(/^Pss:\s+(\d+)/m.exec(text)[1]) * 1024) / MIB;
}

async function figures(page) {
  const { pid, workers } = pageProcesses().sort((a, b) => b.workers - a.workers)[0];
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
  return { memory: residentMib(pid), workers, heap: heap / MIB };
}

/** Compare the last third of some laps with their first third. */
function judge(which, part) {
  const third = Math.max(1, Math.floor(part.length / 3));
  for (const [name, least] of FIGURES) {
    const [first, last] = [part.slice(0, third), part.slice(-third)].map((laps) =>
      median(laps.map((one) => one[name])),
    );
    console.log(
      `soak: ${which}: ${name}: median of the first third ${first.toFixed(1)} MiB, of the last ` +
        `${last.toFixed(1)} MiB`,
    );
    const grew = part.length >= LAPS_LEAST && last > first * (1 + GROWTH_PART) + least;
    if (grew) failure ||= `${name} has grown (${which})`;
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

/** Collect garbage, in the workers too. A worker may end meanwhile. */
async function rest(page) {
  const late = new Promise((resolve) => setTimeout(resolve, COLLECT_MS));
  const collected = [page, ...page.workers()].map((one) => one.evaluate(() => globalThis.gc()).catch(() => {}));
  await Promise.race([Promise.all(collected), late]);
  await page.waitForTimeout(300);
}

const chromium = findChromium();
if (!chromium) {
  console.log("soak: skipped, because there is no Chromium");
  process.exit(0);
}
const server = await serve(new URL("..", import.meta.url).pathname, { isolated });
const browser = await openBrowser(chromium, { flags: ["--js-flags=--expose-gc"] });
const page = await browser.context.newPage();
page.on("pageerror", (error) => console.error(`page: ${error}`));
const until = performance.now() + seconds * 1000;
const seen = [];
let [laps, lives, operations, latest] = [0, 0, 0, 0];
let failure = "";
try {
  while (performance.now() < until || lives < 2) {
    await page.goto(`${server.origin}/tests/empty.html`);
    const kept = await page.evaluate(begin);
    if (kept !== laps) throw new Error(`after a reload, the sandbox knows ${kept} laps of ${laps}`);
    lives++;
    const leave = performance.now() + (seconds * 1000) / VISITS;
    do {
      const done = await page.evaluate(lap, ++laps);
      operations += done.operations;
      latest = Math.max(latest, done.latest);
      await rest(page);
      const found = { ...(await figures(page)), kernel: done.kernel, visit: lives };
      seen.push(found);
      console.log(
        `lap ${laps} (visit ${lives}): ${found.memory.toFixed(0)} MiB, ${found.workers} workers, ` +
          `JavaScript heap ${found.heap.toFixed(1)} MiB, kernel ${found.kernel.toFixed(0)} MiB`,
      );
    } while (performance.now() < leave && performance.now() < until);
  }
  judge("all visits", seen);
  for (let visit = 1; visit <= lives; visit++) {
    judge(`visit ${visit}`, seen.filter((one) => one.visit === visit));
  }
  const most = Math.max(...seen.map((one) => one.workers));
  console.log(`soak: at most ${most} workers at rest`);
  if (most > MOST_WORKERS) failure ||= `${most} workers at rest`;
} catch (error) {
  failure = String(error);
}
console.log(
  `soak: ${failure ? `FAILED: ${failure}` : "passed"}: ${operations} operations in ${laps} laps and ` +
    `${lives} visits; a runaway ended at most ${Math.round(latest)} ms after its time`,
);
await browser.close();
await server.close();
process.exit(failure ? 1 : 0);
