// Cases of programs that guests bring: what they may import, and what hostile ones get.

import { check, equal, output, type Case } from "../check.js";

type Bytes = number[];

const MAGIC: Bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const named = (text: string): Bytes => [text.length, ...new TextEncoder().encode(text)];
const section = (id: number, body: Bytes): Bytes => [id, body.length, ...body];

/** A module that imports one function (i32) -> () and exports `_start`, which has this code. Its
 *  memory has so many pages. With `starts`, it is also called when the module is instantiated. */
function program(
  module: string, name: string, code: Bytes, { pages = 1, starts = false } = {},
): Uint8Array {
  const size = [128 | (code.length + 2) & 127, (code.length + 2) >> 7];
  return new Uint8Array([
    ...MAGIC,
    ...section(1, [2, 0x60, 1, 0x7f, 0, 0x60, 0, 0]),
    ...section(2, [1, ...named(module), ...named(name), 0, 0]),
    ...section(3, [1, 1]),
    ...section(5, [1, 0, 128 | pages & 127, pages >> 7]),
    ...section(7, [2, ...named("memory"), 2, 0, ...named("_start"), 0, 1]),
    ...(starts ? section(8, [1]) : []),
    ...section(10, [1, ...size, 0, ...code, 0x0b]),
  ]);
}

const CALL_WITH_7: Bytes = [0x41, 7, 0x10, 0];
const LOOP_FOR_EVER: Bytes = [0x03, 0x40, 0x0c, 0, 0x0b];
/** for (;;) try { CODE } catch (all) {} */
const insist = (code: Bytes): Bytes =>
  [0x03, 0x40, 0x02, 0x40, 0x1f, 0x40, 1, 2, 0, ...code, 0x0b, 0x0b, 0x0c, 0, 0x0b];
/** for (;;) fill 64 MiB of memory, eight times */
const FILLS: Bytes = [
  0x03, 0x40,
  ...Array.from({ length: 8 }, () => [0x41, 0, 0x41, 1, 0x41, 128, 128, 128, 32, 0xfc, 11, 0]).flat(),
  0x0c, 0, 0x0b,
];
/** Programs that nothing but the host's own means can end. */
const RUNAWAYS: Record<string, Uint8Array> = {
  "loops": program("wasi_snapshot_preview1", "proc_exit", LOOP_FOR_EVER),
  "fills memory": program("wasi_snapshot_preview1", "proc_exit", FILLS, { pages: 1024 }),
  "loops before it starts": program(
    "wasi_snapshot_preview1", "proc_exit", LOOP_FOR_EVER, { starts: true },
  ),
  "catches all exceptions": program("wasi_snapshot_preview1", "proc_exit", insist(LOOP_FOR_EVER)),
};

export const programCases: Case[] = [
  {
    name: "a program that is not part of the image runs from a file",
    async run({ shared }) {
      const module = program("wasi_snapshot_preview1", "proc_exit", CALL_WITH_7);
      await shared.writeFile("bin/seven", module, { mode: 0o755 });
      equal((await shared.run("bin/seven")).exitCode, 7);
    },
  },
  {
    name: "a program can import nothing of the page",
    async run({ shared }) {
      for (const [module, name] of [["env", "fetch"], ["js", "eval"], ["wasmsand", "memory"]] as const) {
        await shared.writeFile("bin/reaching", program(module, name, CALL_WITH_7), { mode: 0o755 });
        const result = await shared.run("bin/reaching");
        equal(result.exitCode, 126, `the exit code of a program that imports ${module}.${name}`);
      }
    },
  },
  ...Object.entries(RUNAWAYS).map(([what, module]): Case => ({
    name: `a program of a guest that never ends is stopped alone: it ${what}`,
    async run({ shared }) {
      await shared.writeFile("bin/forever", module, { mode: 0o755 });
      const began = performance.now();
      const [stopped, other] = await Promise.all([
        shared.run("bin/forever", { timeoutMs: 500 }), shared.run("sleep 0.1; echo other"),
      ]);
      equal([stopped.exitCode, other.stdout], [124, "other\n"]);
      check(performance.now() - began < 20_000, "it ended soon");
    },
  })),
  {
    name: "programs that do not leave when they should take nothing from others",
    async run({ shared }) {
      const module = program("wasi_snapshot_preview1", "proc_exit", insist(CALL_WITH_7));
      await shared.writeFile("bin/insisting", module, { mode: 0o755 });
      for (let round = 0; round < 4; round++) {
        equal((await shared.run("bin/insisting")).exitCode, 7);
        equal(await output(shared, "echo $(echo on)"), "on\n");
      }
    },
  },
  {
    name: "a program cannot use what its form here adds",
    async run({ shared }) {
      // Global 0, table 0 and function 2 do not exist in these programs.
      const codes = [[0x41, 1, 0x24, 0], [0x41, 0, 0xd0, 0x70, 0x26, 0], [0x10, 2]];
      for (const code of codes) {
        const module = program("wasi_snapshot_preview1", "proc_exit", [...code, ...CALL_WITH_7]);
        await shared.writeFile("bin/taking", module, { mode: 0o755 });
        check((await shared.run("bin/taking")).exitCode !== 7, `it did not run: ${code}`);
      }
    },
  },
  {
    name: "damaged programs are refused",
    async run({ shared }) {
      const good = program("wasi_snapshot_preview1", "proc_exit", CALL_WITH_7);
      for (const length of [4, 8, 20, good.length - 1]) {
        await shared.writeFile("bin/damaged", good.subarray(0, length), { mode: 0o755 });
        const result = await shared.run("bin/damaged");
        check([126, 127, 2, 1].includes(result.exitCode), `${length} bytes: ${result.exitCode}`);
      }
      equal(await output(shared, "echo alive"), "alive\n");
    },
  },
  {
    name: "the programs of the image can be read as files",
    async run({ shared }) {
      equal(await output(shared, "head -c 4 /usr/bin/bash | od -An -tx1"), " 00 61 73 6d\n");
      const [size] = (await output(shared, "wc -c < /usr/bin/sed")).trim().split(" ");
      equal((await shared.readFile("/usr/bin/sed")).length, Number(size));
      const copied = "cp /usr/bin/sed own && ./own --version";
      check((await output(shared, copied)).includes("GNU sed"), "a copy of a program runs");
    },
  },
];
