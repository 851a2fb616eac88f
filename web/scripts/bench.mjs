// Measures a sandbox in Chromium and in Node: node scripts/bench.mjs
//
// Rules: medians of several runs, in milliseconds of wall-clock time. The cost of a system call is
// the difference of two loops of `read`, because its result is never known without the kernel.

import { findChromium, openBrowser } from "./browser.mjs";
import { serve } from "./static-server.mjs";

const web = new URL("..", import.meta.url).pathname;
const ROWS = [
  ["echo hi", "echo hi", 15],
  ["a pipeline of three", "seq 100 | sort -n | tail -1", 10],
  ["git --version", "git --version", 5],
  ["python3 -c 'print(1)'", "python3 -c 'print(1)'", 5],
  ["20 forks of bash", "for i in {1..20}; do ( : ); done", 5],
];

/** Runs in the page too, so it uses nothing of this file. */
async function measure({ rows, module }) {
  const { Sandbox } = await import(module);
  const now = () => performance.now();
  let began = now();
  const sandbox = await Sandbox.create();
  const found = [["Sandbox.create", now() - began]];
  for (const [name, command, count] of rows) {
    const times = [];
    for (let number = 0; number <= count; number++) {
      began = now();
      const { exitCode, stderr } = await sandbox.run(command);
      if (exitCode !== 0) throw new Error(`${name}: ${stderr}`);
      times.push(now() - began);
    }
    found.push([`${name}, first`, times.shift()]);
    found.push([name, times.sort((a, b) => a - b)[times.length >> 1]]);
  }
  const bytes = (count) => `dd if=/dev/zero of=/dev/null bs=1 count=${count} 2>/dev/null`;
  const spent = [];
  for (const count of [2000, 12000]) {
    began = now();
    await sandbox.run(bytes(count));
    spent.push(now() - began);
  }
  found.push(["a system call (20,000 of dd)", (spent[1] - spent[0]) / 20_000]);
  sandbox.destroy();
  return found;
}

const columns = { Node: await measure({ rows: ROWS, module: `${web}dist/node/index.js` }) };
const chromium = findChromium();
if (chromium) {
  const server = await serve(web);
  const browser = await openBrowser(chromium);
  for (const visit of ["Chromium, first visit", "second visit"]) {
    const page = await browser.context.newPage();
    await page.goto(`${server.origin}/tests/empty.html`);
    columns[visit] = await page.evaluate(measure, { rows: ROWS, module: "/dist/browser/index.js" });
    await page.close();
  }
  await browser.close();
  await server.close();
}
const names = Object.keys(columns);
console.log(`| milliseconds | ${names.join(" | ")} |\n|---|${"---|".repeat(names.length)}`);
columns[names[0]].forEach(([name], row) => {
  const cells = names.map((column) => columns[column][row][1].toFixed(name.includes("call") ? 4 : 1));
  console.log(`| ${name} | ${cells.join(" | ")} |`);
});
process.exit(0);
