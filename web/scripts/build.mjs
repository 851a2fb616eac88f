// Builds dist/: bundles for Node (ESM, and CommonJS for the entry) and for browsers, and the types.
//
// Rules: workers are files of their own beside the entry, which finds them by import.meta.url.

import { spawnSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { build } from "esbuild";
import { browserOptions, nodeOptions, nodeWorkers, workers } from "./bundles.mjs";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });
for (const file of ["LICENSE", "NOTICE"]) copyFileSync(`../${file}`, file); // npm packs them

await Promise.all([
  build({
    ...nodeOptions,
    format: "esm",
    outdir: "dist/node",
    entryPoints: { index: "src/index.ts", ...nodeWorkers },
  }),
  build({
    ...nodeOptions,
    format: "cjs",
    outfile: "dist/node/index.cjs",
    entryPoints: ["src/index.ts"],
    define: { "import.meta.url": "moduleUrl" },
    banner: { js: 'const moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
  }),
  build({
    ...browserOptions,
    outdir: "dist/browser",
    entryPoints: { index: "src/index.ts", ...workers },
  }),
]);
const types = spawnSync(
  "node_modules/.bin/tsc",
  ["--noEmit", "false", "--emitDeclarationOnly", "--declaration", "--rootDir", "src",
   "--outDir", "dist/types", "--project", "tsconfig.types.json"],
  { stdio: "inherit" },
);
process.exit(types.status ?? 1);
