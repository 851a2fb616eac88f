// Cases of programs that guests bring: what they may import, and what hostile ones get.

import { check, equal, output, type Case } from "../check.js";
import { CALL_WITH_7, LOOP_FOR_EVER, program, type Bytes } from "../modules.js";

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
