// Cases of commands: results, pipelines, fork, programs, limits.

import { check, equal, output, pause, rejection, type Case } from "../check.js";

export const commandCases: Case[] = [
  {
    name: "run returns exit code, output, errors and time",
    async run({ shared }) {
      const result = await shared.run("echo hello; echo oops >&2; exit 3");
      equal([result.exitCode, result.stdout, result.stderr], [3, "hello\n", "oops\n"]);
      check(result.executionTimeMs > 0 && !result.timedOut && !result.truncated, "time and flags");
    },
  },
  {
    name: "run passes standard input, variables and directory",
    async run({ shared }) {
      const result = await shared.run("cat; echo $GREETING; pwd", {
        stdin: "in\n", env: { GREETING: "hi" }, cwd: "/tmp",
      });
      equal(result.stdout, "in\nhi\n/tmp\n");
    },
  },
  {
    name: "output that is not UTF-8 is kept as bytes",
    async run({ shared }) {
      const result = await shared.run("printf '\\377\\001x'");
      equal([...result.stdoutBytes], [255, 1, 120]);
    },
  },
  {
    name: "pipelines run concurrently",
    async run({ shared }) {
      equal(await output(shared, "yes | head -3 | tr y n | sort -u"), "n\n");
      equal(await output(shared, "seq 20000 | awk '{s+=$1} END {print s}'"), "200010000\n");
    },
  },
  {
    name: "subshells, command substitution and background jobs fork",
    async run({ shared }) {
      const script = "x=1; (x=2; echo $x); echo $x $(echo sub); sleep 0.05 & wait $!; echo $?";
      equal(await output(shared, script), "2\n1 sub\n0\n");
    },
  },
  {
    name: "python3 runs with its library and starts processes",
    async run({ shared }) {
      const code = "import json, subprocess; print(json.dumps([1, subprocess.check_output(['echo', 'x']).decode()]))";
      equal(await output(shared, `python3 -c "${code}"`), '[1, "x\\n"]\n');
    },
  },
  {
    name: "git commits and shows history",
    async run({ shared }) {
      const script = `
        mkdir -p ~/repo && cd ~/repo && git init -q && echo one > a && git add a &&
        git -c user.name=n -c user.email=e@example.org commit -q -m first && git log --format=%s`;
      equal(await output(shared, script), "first\n");
    },
  },
  {
    name: "a command that does not exist is 127",
    async run({ shared }) {
      const result = await shared.run("no-such-command");
      equal(result.exitCode, 127);
      check(result.stderr.includes("no-such-command: command not found"), result.stderr);
    },
  },
  {
    name: "a loop that never ends is stopped by its time limit, and the sandbox goes on",
    async run({ shared }) {
      const result = await shared.run("while :; do :; done", { timeoutMs: 400 });
      equal([result.exitCode, result.timedOut], [124, true]);
      check(result.stderr.endsWith("command timed out\n"), result.stderr);
      equal(await output(shared, "echo alive"), "alive\n");
    },
  },
  {
    name: "a program that computes without system calls is stopped by its time limit",
    async run({ shared }) {
      const result = await shared.run("echo kept > /tmp/kept; python3 -c 'while True: pass'", {
        timeoutMs: 3000,
      });
      equal([result.exitCode, result.timedOut], [124, true]);
      equal(await output(shared, "cat /tmp/kept"), "kept\n");
    },
  },
  {
    name: "many commands run at the same time",
    async run({ shared }) {
      const numbers = [1, 2, 3, 4, 5, 6];
      const results = await Promise.all(
        numbers.map((n) => shared.run(`sleep 0.0${n}; echo ${n} | cat`)),
      );
      equal(results.map((result) => result.stdout), numbers.map((n) => `${n}\n`));
    },
  },
  {
    name: "listeners get output while the command runs",
    async run({ shared }) {
      const times: [string, number][] = [];
      const began = performance.now();
      const result = await shared.run("echo one; sleep 0.5; echo two; echo bad >&2", {
        onStdout: (text) => times.push([text, performance.now() - began]),
      });
      equal([result.stdout, result.stderr], ["one\ntwo\n", "bad\n"]);
      equal(times.map(([text]) => text), ["one\n", "two\n"]);
      check(times[1]![1] - times[0]![1] > 300, `pieces came apart: ${JSON.stringify(times)}`);
    },
  },
  {
    name: "an AbortSignal ends the command",
    async run({ shared }) {
      const controller = new AbortController();
      const running = shared.run("sleep 60", { signal: controller.signal });
      setTimeout(() => controller.abort(new Error("enough")), 200);
      equal((await rejection(running, Error)).message, "enough");
      const before = await rejection(shared.run("true", { signal: AbortSignal.abort() }), Error);
      equal(before.name, "AbortError");
    },
  },
  {
    name: "a started command reads what is written, and ends",
    async run({ shared }) {
      let text = "";
      const command = await shared.start("while read line; do echo \"got $line\"; done", {
        stdin: true, onStdout: (bytes) => (text += new TextDecoder().decode(bytes)),
      });
      await command.write("a\n");
      await command.write("b\n");
      await command.closeStdin();
      equal((await command.ended).exitCode, 0);
      equal(text, "got a\ngot b\n");
    },
  },
  {
    name: "a started command can be killed",
    async run({ shared }) {
      const command = await shared.start(["sleep", "60"]);
      await command.kill();
      equal((await command.ended).exitCode, 137);
    },
  },
  {
    name: "processes are listed and get signals",
    async run({ shared }) {
      const command = await shared.start(["sleep", "61"]);
      const found = (await shared.processes()).find((process) => process.command[1] === "61");
      equal(found?.pid, command.pid);
      await shared.kill(command.pid, 15);
      equal((await command.ended).exitCode, 143);
    },
  },
  {
    name: "too much output is cut, and the command ends",
    async run({ create }) {
      const sandbox = await create({ maxOutputBytes: 100_000 });
      const result = await sandbox.run("yes");
      equal([result.truncated, result.stdoutBytes.length], [true, 100_000]);
      const streamed = await sandbox.run("yes", { onStdout: () => {} });
      equal([streamed.truncated, streamed.stdoutBytes.length], [true, 100_000]);
    },
  },
  {
    name: "a fork bomb meets the limit of processes",
    async run({ create }) {
      const sandbox = await create({ maxProcesses: 12, timeoutMs: 3000 });
      await sandbox.run("f() { f | f & }; f; wait");
      for (let tries = 0; (await sandbox.usage()).processes > 0 && tries < 50; tries++) {
        await pause(100);
      }
      equal(await output(sandbox, "echo alive"), "alive\n");
    },
  },
  {
    name: "a page that does not take output makes the program wait",
    async run({ shared }) {
      const loop = "while :; do printf '%065536d' 0; echo >> written; done";
      let got = 0;
      const command = await shared.start(loop, { onStdout: (bytes) => void (got += bytes.length) });
      while (got < 1 << 20) await pause(5);
      const until = Date.now() + 1000;
      while (Date.now() < until); // nothing is taken meanwhile
      const taken = got; // what has piled up comes before the answer
      const size = (await shared.stat("written")).size;
      await command.kill();
      await command.ended;
      check(size * 65536 < taken + (4 << 20), `${size} pieces written, ${taken} bytes taken`);
    },
  },
  {
    name: "the earlier of two alarms rings first, and a tiny interval harms nobody",
    async run({ shared }) {
      const wait = "import signal, time; signal.signal(signal.SIGALRM, lambda *_: print('rang'))\n";
      const early = `${wait}signal.setitimer(signal.ITIMER_REAL, 0.3); signal.pause(); print('end')`;
      const late = `${wait}signal.setitimer(signal.ITIMER_REAL, 30); time.sleep(1)`;
      const busy = "import signal, time; signal.signal(signal.SIGALRM, lambda *_: None)\n" +
        "signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6); end = time.time() + 1\n" +
        "while time.time() < end: pass";
      const began = Date.now();
      const rings = shared.run("python3 -", { stdin: early });
      await pause(50);
      const others = [late, busy].map((code) => shared.run("python3 -", { stdin: code }));
      equal((await rings).stdout, "rang\nend\n");
      check(Date.now() - began < 5000, "the alarm was late");
      equal(await output(shared, "echo still here"), "still here\n");
      await Promise.all(others);
    },
  },
];
