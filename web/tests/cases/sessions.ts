// Cases of sessions and terminals.

import { check, equal, pause, type Case } from "../check.js";

export const sessionCases: Case[] = [
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
      await pause(200);
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
