// The Python package, for tests: servers of the command `wasmsand`.
//
// Rules: the Python of the checkout's .venv if there is one, else the one in PATH. Servers listen on
// loopback, on a port that is free.

import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = new URL("../..", import.meta.url).pathname;
const own = join(root, ".venv/bin/python");
const python = existsSync(own) ? own : "python";
const environment = { ...process.env, PYTHONPATH: join(root, "src"), WASMSAND_TOKENS: "" };

/** Why there is no server; false if there is one. */
export function missingServer() {
  const found = spawnSync(python, ["-c", "import uvicorn, starlette, msgspec, wasmtime"], {
    env: environment, encoding: "utf8",
  });
  return found.status === 0 ? false : "no Python with the packages of 'wasmsand[serve]'";
}

/** Start `wasmsand WORDS`. `url` is the first URL that it prints. */
export function startWasmsand(words, variables = {}) {
  const child = spawn(python, ["-m", "wasmsand", ...words], {
    env: { ...environment, ...variables }, stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8");
  return new Promise((resolve, reject) => {
    child.on("exit", () => reject(new Error(`wasmsand ${words.join(" ")} ended: ${said}`)));
    child.stderr.on("data", (text) => {
      said += text;
      const url = /https?:\/\/\S+(?=\s)/.exec(said)?.[0];
      if (!url) return;
      resolve({
        url,
        said: () => said,
        close: () => new Promise((done) => {
          child.removeAllListeners("exit");
          if (child.exitCode !== null) return done();
          child.on("exit", done);
          child.kill("SIGTERM");
        }),
      });
    });
  });
}

/** The address of the page that `wasmsand serve --playground` prints, after that of the server. */
export async function playgroundAddress(server) {
  for (let tries = 0; tries < 250; tries++) {
    const found = /\S+\/playground\/\S+/.exec(server.said());
    if (found) return found[0];
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`no address of the playground: ${server.said()}`);
}
