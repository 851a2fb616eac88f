// Cases of copies of a sandbox, and of compiled packages.

import { check, equal, output, rejection, type Case, type World } from "../check.js";

const NUMPY = "python3 -c 'import numpy as np; print(np.arange(6).reshape(2, 3).sum(axis=0))'";

/** Whether the assets have the second stage of the build. */
async function hasPackages({ create, api }: World): Promise<boolean> {
  try {
    (await create({ packages: ["numpy"] })).destroy();
    return true;
  } catch (error) {
    if (error instanceof api.PackageError && error.message.includes("make packages")) {
      console.warn(`skipped: ${error.message}`);
      return false;
    }
    throw error;
  }
}

export const stateCases: Case[] = [
  {
    name: "a fork has the same files, variables and options, and goes its own way",
    async run({ create }) {
      const sandbox = await create({ timeoutMs: 20_000, env: { A: "1" } });
      await sandbox.writeFile("a", "before");
      await sandbox.setEnv("B", "2");
      const twin = await sandbox.fork();
      try {
        await sandbox.writeFile("a", "after");
        equal(await output(twin, "cat a; echo $A$B"), "before12\n");
        await twin.writeFile("b", "mine");
        equal(await output(sandbox, "cat a; ls"), "aftera\n");
      } finally {
        twin.destroy();
      }
      equal(await output(sandbox, "echo alive"), "alive\n");
    },
  },
  {
    name: "files that a sandbox had before it was restored are given back",
    async run({ create }) {
      const sandbox = await create();
      const kernelBytes = async () => (await sandbox.usage()).kernelBytes ?? 0; // a server does not say
      const before = await kernelBytes();
      await sandbox.snapshot("empty");
      for (let round = 0; round < 40; round++) {
        await sandbox.writeFile("large", new Uint8Array(4_000_000).fill(round));
        await sandbox.restore("empty");
      }
      const grown = ((await kernelBytes()) - before) / 1e6;
      check(grown < 40, `the kernel has grown by ${grown} MB after files of 160 MB`);
    },
  },
  {
    name: "packages of Python can be imported from the start",
    async run({ create, api }) {
      const sandbox = await create({ packages: ["requests"] });
      equal(await output(sandbox, "python3 -c 'import requests; print(requests.__name__)'"), "requests\n");
      const unknown = await rejection(create({ packages: ["no-such-package"] }), api.PackageError);
      check(unknown.message.includes("no-such-package"), unknown.message);
    },
  },
  {
    name: "compiled packages: numpy computes, and matplotlib's pictures are results",
    timeoutMs: 600_000, // it transfers and compiles a hundred megabytes
    async run(world) {
      if (!(await hasPackages(world))) return;
      const sandbox = await world.create({ packages: ["numpy", "pandas", "matplotlib"], timeoutMs: null });
      equal(await output(sandbox, NUMPY), "[3 5 7]\n");
      const frame = "import pandas as pd; print(pd.DataFrame({'a': [1, 2]}).a.sum())";
      equal(await output(sandbox, `python3 -c "${frame}"`), "3\n");
      const python = await sandbox.python();
      const code = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()";
      const drawn = await python.run(code, { timeoutMs: 300_000 });
      equal(drawn.error, null);
      const picture = JSON.stringify(drawn.results);
      check(picture.includes("iVBORw0KGgo"), `a PNG is among the results: ${picture.slice(0, 300)}`);
    },
  },
];
