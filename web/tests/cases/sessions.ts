// Cases of sessions and terminals.

import { check, equal, pause, type Case } from "../check.js";

export const sessionCases: Case[] = [
  {
    name: "keys reach a program at once: vim ends when its last key is typed",
    async run({ shared }) {
      const decoder = new TextDecoder();
      for (let round = 0; round < 6; round++) {
        let text = "";
        const screen = new Set<() => void>();
        const terminal = await shared.pty({
          command: `vim /tmp/typed${round}`, cols: 80, rows: 24,
          onData: (bytes) => {
            text += decoder.decode(bytes, { stream: true });
            for (const look of screen) look();
          },
        });
        await new Promise<void>((resolve) => {
          const look = () => text.includes("[New]") && resolve();
          screen.add(look);
          look();
        });
        // A terminal answers the question for its version, which makes vim ask more.
        if (round % 2) void terminal.write("\x1b[>0;276;0c");
        for (const key of `ikey ${round}\x1b:wq\r`) void terminal.write(key);
        equal((await terminal.ended).exitCode, 0);
        equal(await shared.readText(`/tmp/typed${round}`), `key ${round}\n`);
      }
    },
  },
  {
    name: "a terminal echoes, runs commands and reports its size",
    async run({ shared }) {
      let text = "";
      const terminal = await shared.pty({
        cols: 100, rows: 30, onData: (bytes) => (text += new TextDecoder().decode(bytes)),
      });
      const until = async (wanted: string) => {
        for (let tries = 0; !text.includes(wanted) && tries < 200; tries++) await pause(50);
        check(text.includes(wanted), `${JSON.stringify(text)} has ${wanted}`);
      };
      await terminal.write("stty size; tty\n");
      await until("30 100\r\n");
      await until("/dev/pts/");
      await terminal.resize(90, 20);
      await terminal.write("stty size\n");
      await until("20 90\r\n");
      await terminal.write("sleep 60\n");
      const sleeps = async () => (await shared.processes()).some(({ command }) => command[0] === "sleep");
      for (let tries = 0; !(await sleeps()) && tries < 200; tries++) await pause(50);
      await terminal.write("\x03");
      await terminal.write("echo $((6*7)) done\n");
      await until("42 done\r\n");
      await terminal.write("exit 5\n");
      equal((await terminal.ended).exitCode, 5);
    },
  },
  {
    name: "a shell session keeps directory, variables and functions",
    async run({ shared }) {
      const shell = await shared.shell();
      await shell.run("cd /tmp; x=5; f() { echo f$x; }");
      equal((await shell.run("pwd; f")).stdout, "/tmp\nf5\n");
      equal((await shell.run("false")).exitCode, 1);
      await shell.close();
    },
  },
  {
    name: "a Python session keeps its variables and returns values",
    async run({ shared }) {
      const python = await shared.python();
      await python.run("x = [1, 2]");
      const result = await python.run("print(len(x)); {'sum': sum(x)}");
      equal([result.stdout, result.value, result.error], ["2\n", { sum: 3 }, null]);
      const failed = await python.run("1/0");
      equal(failed.error?.type, "ZeroDivisionError");
      await python.close();
    },
  },
];
