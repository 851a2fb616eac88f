// What docs/limitations.md says about pages and Node. On the day a gap is closed, its case fails:
// remove it and the row together.

import { check, equal, output, rejection, type Case } from "../check.js";

export const limitationCases: Case[] = [
  {
    name: "L195: a page reaches only servers that allow it, and no redirect; Node reaches both",
    async run({ create, outside, api }) {
      const hosts = outside.hosts ? { hosts: outside.hosts } : {};
      const inPage = outside.hosts === null;
      const allow = ["web.test", "other.web.test"];
      const sandbox = await create({ network: { allow, ...hosts } });
      const place = `http://web.test:${outside.plainPort}`;
      const status = (path: string) =>
        output(sandbox, `curl -sSL -o /dev/null -w '%{http_code}' ${place}${path}`);
      equal(await status("/allowed"), "200");
      equal(await status("/no-cors"), inPage ? "502" : "200");
      equal(await status("/elsewhere"), inPage ? "502" : "200");
      if (inPage) {
        const given = { allow, hosts: { "web.test": "127.0.0.1" } };
        await rejection(create({ network: given }), api.SandboxError);
      }
      const proxy = { allow, proxy: "http://proxy.test:3128" } as object;
      await rejection(create({ network: proxy }), api.SandboxError);
    },
  },
  {
    name: "L197: a fork of a sandbox has no live sessions",
    async run({ create }) {
      const sandbox = await create();
      const shell = await sandbox.shell();
      await shell.run("here=original");
      check((await sandbox.processes()).length > 0, "the session is a process");
      const twin = await sandbox.fork();
      try {
        equal(await twin.processes(), []);
      } finally {
        twin.destroy();
      }
    },
  },
  {
    name: "L198: every process has a copy of its memory",
    async run({ create }) {
      const sandbox = await create();
      const sessions = [await sandbox.python(), await sandbox.python()];
      for (const session of sessions) await session.run("import json");
      const sizes = (await sandbox.processes())
        .map((process) => process.memoryBytes)
        .filter((bytes) => bytes > 4_000_000);
      equal(sizes.length, 2, "processes of Python");
      const { memoryBytes } = await sandbox.usage();
      check(memoryBytes >= sizes[0]! + sizes[1]!, `${memoryBytes} of ${sizes.join(" and ")}`);
    },
  },
  {
    name: "L184: in a page, deep recursion ends a program; on Node it is an error",
    async run({ shared, outside }) {
      const nested = "import json\nx = []\nfor _ in range(100_000): x = [x]\n" +
        "try: json.dumps(x)\nexcept RecursionError: print('RecursionError')";
      const python = await shared.run("python3 -", { stdin: nested });
      const inPage = outside.hosts === null;
      equal([python.exitCode, python.stdout], inPage ? [139, ""] : [0, "RecursionError\n"]);
      // What is deep enough for most programs works everywhere.
      const levels = "f() { local n=$1; ((n)) && f $((n-1)); }; f 150; echo $?";
      equal(await output(shared, levels), "1\n");
    },
  },
  {
    name: "L196: a directory cannot be mounted for writing, and a page has none",
    async run({ shared, api }) {
      const mode = "read-write" as never;
      await rejection(shared.mount("/mnt/host", "/tmp", { mode }), api.MountError);
    },
  },
];
