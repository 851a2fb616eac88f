// Cases of programs that guests bring: what they may import, and what hostile ones get.

import { check, equal, output, type Case } from "../check.js";

type Bytes = number[];

const MAGIC: Bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const named = (text: string): Bytes => [text.length, ...new TextEncoder().encode(text)];
const section = (id: number, body: Bytes): Bytes => [id, body.length, ...body];

/** A module that imports one function (i32) -> () and exports `_start`, which has this code. */
function program(module: string, name: string, code: Bytes): Uint8Array {
  return new Uint8Array([
    ...MAGIC,
    ...section(1, [2, 0x60, 1, 0x7f, 0, 0x60, 0, 0]),
    ...section(2, [1, ...named(module), ...named(name), 0, 0]),
    ...section(3, [1, 1]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...named("memory"), 2, 0, ...named("_start"), 0, 1]),
    ...section(10, [1, code.length + 2, 0, ...code, 0x0b]),
  ]);
}

const CALL_WITH_7: Bytes = [0x41, 7, 0x10, 0];
const LOOP_FOR_EVER: Bytes = [0x03, 0x40, 0x0c, 0, 0x0b];

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
  {
    name: "a program of a guest that never ends is stopped alone",
    async run({ shared }) {
      const module = program("wasi_snapshot_preview1", "proc_exit", LOOP_FOR_EVER);
      await shared.writeFile("bin/forever", module, { mode: 0o755 });
      const began = performance.now();
      const [stopped, other] = await Promise.all([
        shared.run("bin/forever", { timeoutMs: 500 }), shared.run("sleep 0.1; echo other"),
      ]);
      equal([stopped.exitCode, other.stdout], [124, "other\n"]);
      check(performance.now() - began < 20_000, "it ended soon");
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
