// What a hostile guest tries in a page or in Node: to reach what is outside, and to take memory that
// nobody counts. docs/threat-model.md names these cases.

import { leb, signedLeb } from "../../src/kernel/wasm-reader.js";
import { check, equal, output, type Case } from "../check.js";
import type { Sandbox } from "../../src/index.js";
import {
  CALL_WITH_7, EXNREF, FUNCREF, FUNCTION_KIND, GLOBAL_KIND, I32, LOOP_FOR_EVER, MEMORY_KIND, moduleOf,
  program, TABLE_KIND, TAG_KIND, type Bytes, type ModuleParts,
} from "../modules.js";

const WASI = "wasi_snapshot_preview1";
const EXTERNREF = 0x6f;
const times = (count: number, bytes: Bytes): Bytes => Array.from({ length: count }, () => bytes).flat();

/** Run a module as a program. */
async function ran(sandbox: Sandbox, module: Uint8Array, timeoutMs = 20_000) {
  await sandbox.writeFile("bin/hostile", module, { mode: 0o755 });
  return sandbox.run("bin/hostile", { timeoutMs });
}

/** A program that exits with 7 and has these parts too. */
const exits = (parts: ModuleParts): Uint8Array => program(WASI, "proc_exit", CALL_WITH_7, parts);

/** try { throw tag 0 of `values` } catch, with a reference: it is on the stack. */
const thrown = (values: Bytes): Bytes =>
  [0x02, EXNREF, 0x1f, 0x40, 1, 3, 0, ...values, 0x08, 0, 0x0b, 0x00, 0x0b];

/** Imports that a page could give, and must not. Type 1 is (i32) -> (). */
const REACHING: [string, string, number, Bytes][] = [
  ["env", "fetch", FUNCTION_KIND, [1]],
  ["js", "eval", FUNCTION_KIND, [1]],
  ["wasm:js-string", "length", FUNCTION_KIND, [1]],
  ["wasmsand", "memory", FUNCTION_KIND, [1]],
  ["wasmsand", "memory", MEMORY_KIND, [0, 1]],
  ["linux", "syscall", GLOBAL_KIND, [I32, 0]],
  ["env", "table", TABLE_KIND, [FUNCREF, 0, 0]],
  ["env", "tag", TAG_KIND, [0, 1]],
];

/** What a program may not declare, because the engine's memory for it is on no account. */
const KEEPING: Record<string, Uint8Array> = {
  "exceptions that hold exceptions": exits({
    types: [[[I32], []], [[EXNREF], []]], tags: [[0, 2]],
  }),
  "large exceptions": exits({ types: [[[I32], []], [times(900, [I32]), []]], tags: [[0, 2]] }),
  "a global of exceptions": exits({ globals: [[EXNREF, 1, 0xd0, EXNREF, 0x0b]] }),
  "a table of exceptions": exits({ tables: [[EXNREF, 0, 100]] }),
  "a table of objects": exits({ tables: [[EXTERNREF, 0, 100]] }),
  "many tables": exits({ tables: [[FUNCREF, 0, 1], [FUNCREF, 0, 1], [FUNCREF, 0, 1]] }),
  "a large table": exits({ tables: [[FUNCREF, 0, ...leb(5_000_000)]] }),
  "a function that takes gigabytes to compile": exits({
    locals: [1, ...leb(40_000), I32], code: [...times(2_000, [0x02, 0x40, 0x41, 0, 0x0d, 0, 0x0b]), ...CALL_WITH_7],
  }),
};

/** Exports that say something untrue about the program. `_start` is function 1. */
const LYING: Record<string, Uint8Array> = {
  ...Object.fromEntries([-4, -16, 65_534, 3, 0x7fff_fff0].map((address) => [
    `its signal flag is at ${address}`,
    program(WASI, "proc_exit", LOOP_FOR_EVER, {
      globals: [[I32, 0, 0x41, ...signedLeb(address), 0x0b]],
      exports: [["__signal_flag", GLOBAL_KIND, 0], ["__signal_run", FUNCTION_KIND, 1]],
    }),
  ])),
  "its entry is a number": moduleOf({
    globals: [[I32, 0, 0x41, 0, 0x0b]], exports: [["__thread_start", GLOBAL_KIND, 0]],
    code: LOOP_FOR_EVER,
  }),
  ...Object.fromEntries([0, -8, 65_532, 0x7fff_0000].map((buffer) => [
    `it forks with frames at ${buffer}`,
    moduleOf({
      types: [[[I32], [I32]], [[I32], []]], imports: [["linux", "fork", FUNCTION_KIND, [1]]],
      globals: [[I32, 1, 0x41, ...signedLeb(buffer), 0x0b]],
      exports: [
        ["__stack_pointer", GLOBAL_KIND, 0],
        ...["start_unwind", "start_rewind"].map((name): [string, number, number] =>
          [`asyncify_${name}`, FUNCTION_KIND, 2]),
        ...["stop_unwind", "stop_rewind"].map((name): [string, number, number] =>
          [`asyncify_${name}`, FUNCTION_KIND, 3]),
      ],
      more: [[2, []], [0, []]],
      code: [0x41, ...signedLeb(buffer), 0x10, 0, 0x1a],
    }),
  ])),
};

export const hostileCases: Case[] = [
  {
    name: "a program can import nothing of the page",
    async run({ shared }) {
      for (const [module, name, kind, what] of REACHING) {
        const parts: ModuleParts = { types: [[[I32], []]], imports: [[module, name, kind, what]] };
        const result = await ran(shared, moduleOf(parts));
        equal(result.exitCode, 126, `the exit code of a program that imports ${module}.${name} (${kind})`);
      }
    },
  },
  {
    name: "the Python of a guest has no way to JavaScript",
    async run({ shared }) {
      const modules = ["js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core", "wasmsand"];
      const code = `import importlib, sys
for name in ${JSON.stringify(modules)}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    print(name)
print(sys.platform)`;
      equal((await shared.run("python3 -", { stdin: code })).stdout, "linux\n");
    },
  },
  {
    name: "a sandbox contains nothing of the page or process around it",
    async run({ create }) {
      const secret = `secret${Math.random().toString(36).slice(2)}`;
      const page = globalThis as any;
      if (page.document) {
        page.document.cookie = `cookie=${secret}`;
        page.document.title = secret;
        page.localStorage.setItem("kept", secret);
        page.sessionStorage.setItem("kept", secret);
        page.history.replaceState(null, "", `?outside=${encodeURIComponent(
          new URLSearchParams(page.location.search).get("outside") ?? "{}")}&${secret}`);
      } else page.process.env.WASMSAND_TEST_SECRET = secret;
      const sandbox = await create();
      await sandbox.writeFile("/srv/pattern", secret); // not in a command line, which /proc shows
      const found = await sandbox.run(
        "env | grep -cf /srv/pattern; grep -rlsf /srv/pattern /home /tmp /etc /dev /root /mnt /run /var; " +
        "cat /proc/*/{environ,cmdline} /proc/{cmdline,version,mounts} 2>/dev/null | grep -acf /srv/pattern",
        { timeoutMs: 60_000 },
      );
      // grep -c says 0 twice: in the variables and in /proc.
      equal(found.stdout, "0\n0\n");
    },
  },
  {
    name: "a program reaches neither the server of the page nor this machine",
    async run({ shared }) {
      const own = (globalThis as any).location?.origin ?? "http://127.0.0.1:8765";
      for (const url of [own, "http://127.0.0.1:8765/", "http://[::1]:8765/", "file:///proc/version"]) {
        const result = await shared.run(`curl -sS -m 10 ${url}`);
        const isOwn = url.startsWith("file:") && result.stdout.includes("wasmsand");
        check(isOwn || result.exitCode !== 0, `${url}: ${result.stdout}`);
      }
      const websocket = await shared.run("exec 3<>/dev/tcp/127.0.0.1/8765");
      check(websocket.exitCode !== 0, "a plain connection");
    },
  },
  ...Object.entries(KEEPING).map(([what, module]): Case => ({
    name: `a program of a guest is refused that has ${what}`,
    async run({ shared }) {
      const result = await ran(shared, module);
      equal(result.exitCode, 126, `the exit code (${result.stderr})`);
    },
  })),
  {
    name: "a table of a guest has a bound",
    async run({ shared }) {
      const grow = (count: number): Bytes => [0xd0, FUNCREF, 0x41, ...signedLeb(count), 0xfc, 15, 0];
      // 7 if 131,071 more elements are given and the next one is not.
      const code = [
        ...grow(131_071), 0x41, 1, 0x46, ...grow(1), 0x41, 0x7f, 0x46, 0x71, 0x41, 7, 0x6c, 0x10, 0,
      ];
      const module = program(WASI, "proc_exit", code, { tables: [[FUNCREF, 0, 1]] });
      const result = await ran(shared, module);
      equal(result.exitCode, 7, `the exit code (${result.stderr})`);
    },
  },
  {
    name: "exceptions that are thrown for ever are collected",
    async run({ shared }) {
      const code = [0x03, 0x40, ...thrown([0x41, 7]), 0x1a, 0x0c, 0, 0x0b];
      const module = program(WASI, "proc_exit", code, { tags: [[0, 1]] });
      equal((await ran(shared, module, 2000)).exitCode, 124);
      equal(await output(shared, "echo alive"), "alive\n");
    },
  },
  ...Object.entries(LYING).map(([what, module]): Case => ({
    name: `a program that lies harms only itself: ${what}`,
    async run({ shared }) {
      const before = (await shared.usage()).processes;
      const result = await ran(shared, module, 1000);
      check(!/bug/i.test(result.stderr), result.stderr);
      equal(await output(shared, "echo $(echo alive)"), "alive\n");
      equal((await shared.usage()).processes, before, "the number of processes");
    },
  })),
  {
    name: "programs have no more memory than the sandbox's limit, alone and together",
    async run({ create }) {
      const sandbox = await create({ memoryLimitMb: 96 });
      const code = "x = []\nwhile True: x.append(bytes(1_000_000))";
      const alone = await sandbox.run("python3 -", { stdin: code });
      check(alone.exitCode !== 0, "it ends");
      const many = `for i in 1 2 3 4 5 6; do python3 -c "x = bytes(30_000_000); import time; time.sleep(1)" & done
        wait -n; wait -n; wait -n; wait -n; wait -n; wait -n; true`;
      let most = 0;
      const running = sandbox.run(many);
      const watch = setInterval(async () => {
        most = Math.max(most, (await sandbox.usage()).memoryBytes);
      }, 50);
      await running.finally(() => clearInterval(watch));
      check(most <= 96 * 2 ** 20, `${most} bytes were used`);
      equal(await output(sandbox, "echo alive"), "alive\n");
    },
  },
];
