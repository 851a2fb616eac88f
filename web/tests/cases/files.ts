// Cases of files, environment, snapshots, errors.

import { check, equal, output, rejection, type Case } from "../check.js";

export const fileCases: Case[] = [
  {
    name: "what writeFile writes, commands and readFile read",
    async run({ shared }) {
      await shared.writeFile("/home/user/w/data.txt", new Uint8Array([104, 105, 0, 255]));
      equal([...(await shared.readFile("/home/user/w/data.txt"))], [104, 105, 0, 255]);
      equal(await output(shared, "wc -c < w/data.txt"), "4\n");
      await shared.run("echo from bash > w/bash.txt");
      equal(await shared.readText("w/bash.txt"), "from bash\n");
    },
  },
  {
    name: "directories are made, listed and removed",
    async run({ shared }) {
      await shared.mkdir("/home/user/d/e");
      await shared.writeFile("/home/user/d/f", "12345");
      const entries = await shared.listDir("/home/user/d");
      equal(entries.map(({ name, type, size }) => [name, type, size]), [["e", "dir", 0], ["f", "file", 5]]);
      check(Math.abs(entries[1]!.mtimeMs - Date.now()) < 60_000, "the time is now");
      await shared.rm("/home/user/d", { recursive: true });
      const error = await rejection(shared.stat("/home/user/d"), Error);
      equal([error.name, (error as { errno?: string }).errno], ["NotFoundError", "ENOENT"]);
    },
  },
  {
    name: "stat, rename, copy, chmod and links",
    async run({ shared }) {
      await shared.writeFile("s/a", "abc", { mode: 0o600 });
      const info = await shared.stat("s/a");
      equal([info.type, info.size, info.mode & 0o777], ["file", 3, 0o600]);
      await shared.copy("s/a", "s/b");
      await shared.rename("s/b", "s/c");
      await shared.chmod("s/c", 0o755);
      await shared.symlink("c", "s/link");
      equal(await shared.readlink("s/link"), "c");
      equal((await shared.stat("s/link")).mode & 0o777, 0o755);
      equal((await shared.stat("s/link", { follow: false })).type, "symlink");
      await shared.appendFile("s/c", "def");
      equal(await shared.readText("s/link"), "abcdef");
    },
  },
  {
    name: "errors have the class and the name of their errno",
    async run({ shared, api }) {
      const missing = await rejection(shared.readFile("/nowhere"), api.NotFoundError);
      equal([missing.errno, missing.path], ["ENOENT", "/nowhere"]);
      check(missing instanceof api.FileError && missing instanceof api.SandboxError, "the tree");
      await shared.mkdir("/home/user/full/x");
      await rejection(shared.readFile("/home/user/full"), api.IsDirectoryError);
      await rejection(shared.listDir("/etc/passwd"), api.NotDirectoryError);
      await rejection(shared.rm("/home/user/full"), api.DirectoryNotEmptyError);
    },
  },
  {
    name: "a full file system is ENOSPC, for the page and for programs",
    async run({ create, api }) {
      const sandbox = await create({ fsLimitBytes: 1_000_000 });
      const error = await rejection(
        sandbox.writeFile("/tmp/big", new Uint8Array(2_000_000)), api.NoSpaceError,
      );
      equal(error.errno, "ENOSPC");
      const result = await sandbox.run("head -c 2000000 /dev/zero > /tmp/big");
      check(result.stderr.includes("No space left on device"), result.stderr);
    },
  },
  {
    name: "wrong options are refused",
    async run({ create, api }) {
      const error = await rejection(create({ timeoutMs: -1 }), api.InvalidArgumentError);
      check(error.message.includes("timeout"), error.message);
    },
  },
  {
    name: "the environment is kept, and commands see it",
    async run({ create }) {
      const sandbox = await create({ env: { FIRST: "1" } });
      await sandbox.setEnv("SECOND", "zwei");
      equal(await sandbox.getEnv("SECOND"), "zwei");
      equal(await sandbox.getEnv("NONE"), undefined);
      equal(await output(sandbox, "printenv FIRST SECOND"), "1\nzwei\n");
      await sandbox.unsetEnv("SECOND");
      equal((await sandbox.run("printenv SECOND")).exitCode, 1);
    },
  },
  {
    name: "restore goes back to a snapshot",
    async run({ create }) {
      const sandbox = await create();
      await sandbox.writeFile("a", "before");
      await sandbox.setEnv("MODE", "before");
      const kept = await sandbox.snapshot();
      await sandbox.run("echo after > a; echo new > b");
      await sandbox.setEnv("MODE", "after");
      await sandbox.restore(kept);
      equal(await output(sandbox, "cat a; ls b 2>/dev/null; echo $MODE"), "beforebefore\n");
      equal(await sandbox.listSnapshots(), [kept]);
    },
  },
  {
    name: "a saved sandbox is loaded by another one",
    async run({ create, api }) {
      const first = await create();
      await first.run("mkdir d; echo kept > d/file; ln -s file d/link; chmod 700 d");
      await first.setEnv("KEPT", "yes");
      const state = await first.save();
      const second = await create();
      await second.load(state);
      equal(await output(second, "cat d/link; stat -c %a d; echo $KEPT"), "kept\n700\nyes\n");
      const error = await rejection(second.load(new Uint8Array([1, 2, 3])), api.SandboxError);
      check(/damaged|not a saved/.test(error.message), error.message);
      equal(await output(second, "cat d/file"), "kept\n");
    },
  },
  {
    name: "a store keeps states by name",
    async run({ api, storePlace }) {
      const store = await api.StateStore.open(storePlace);
      await store.put("one", new Uint8Array([1, 2]));
      await store.put("one", new Uint8Array([3]));
      equal([...(await store.get("one"))!], [3]);
      equal(await store.get("two"), null);
      equal(await store.list(), ["one"]);
      await store.delete("one");
      await store.delete("one");
      equal(await store.list(), []);
      await rejection(store.put("../x", new Uint8Array(1)), api.InvalidArgumentError);
    },
  },
  {
    name: "destroy may be called twice, and then everything is refused",
    async run({ create, api }) {
      const sandbox = await create();
      const running = sandbox.run("sleep 60");
      sandbox.destroy();
      sandbox.destroy();
      await rejection(running, api.SandboxClosedError);
      await rejection(sandbox.run("true"), api.SandboxClosedError);
    },
  },
  {
    name: "sandboxes do not see each other",
    async run({ create }) {
      const [one, two] = await Promise.all([create(), create()]);
      await one.writeFile("secret", "x");
      equal((await two.run("cat secret")).exitCode, 1);
    },
  },
  {
    name: "the tool for language models answers as the design says",
    async run({ shared }) {
      const answer = await shared.callTool({ tool: "sandbox_run", input: { command: "echo hi" } });
      equal([answer.exit_code, answer.stdout, answer.stderr], [0, "hi\n", ""]);
    },
  },
  {
    name: "calls of the tool share a shell, which may end or be started anew",
    async run({ create, api }) {
      const sandbox = await create();
      const call = async (input: object) => {
        const answer = await sandbox.callTool({ tool: "sandbox_run", input });
        return [answer.exit_code, answer.stdout, "note" in answer];
      };
      equal(await call({ command: "cd /tmp; x='it'\\''s'" }), [0, "", false]);
      equal(await call({ command: "pwd; cat; echo $x 'q'", stdin: "in\n" }), [0, "/tmp\nin\nit's q\n", false]);
      equal(await call({ command: "cat; y=kept", stdin: "" }), [0, "", false]);
      equal(await call({ command: "echo $y; exit 3" }), [3, "kept\n", false]);
      equal(await call({ command: "pwd; echo $x" }), [0, "/home/user\n\n", true]);
      await call({ command: "x=2" });
      equal(await call({ command: "echo x$x", restart: true }), [0, "x\n", false]);
      equal(await call({ command: "sleep 60", timeout_ms: 300 }), [124, "", true]);
      equal((await call({ command: "echo on" })).slice(0, 2), [0, "on\n"]);
      for (const wrong of [{}, { command: "" }, { command: 1 }, { command: "a", more: 1 },
        { command: "a", timeout_ms: 0 }, { command: "a", timeout_ms: 1.5 }, { command: "a", restart: 1 }]) {
        await rejection(call(wrong), api.InvalidArgumentError);
      }
    },
  },
];
