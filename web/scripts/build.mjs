// Builds dist/: bundles for Node (ESM, and CommonJS for the entry) and for browsers, and the types.
//
// Rules: workers are files of their own beside the entry, which finds them by import.meta.url.

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });

const workers = {
  "kernel-worker": "src/kernel/kernel-worker.ts",
  "guest-worker": "src/guest/guest-worker.ts",
};
const common = {
  bundle: true,
  target: "es2024",
  sourcemap: true,
  legalComments: "none",
  logLevel: "warning",
};

function platform(name) {
  return {
    name: "platform",
    setup(building) {
      building.onResolve({ filter: /^#platform\// }, ({ path }) => ({
        path: new URL(`../src/platform/${name}/${path.slice(10)}.ts`, import.meta.url).pathname,
      }));
    },
  };
}

const node = { ...common, platform: "node", external: ["pyodide", "pyodide/*"], plugins: [platform("node")] };
const browser = { ...common, platform: "browser", format: "esm", plugins: [platform("browser")] };
await Promise.all([
  build({
    ...node, format: "esm", outdir: "dist/node", entryPoints: { index: "src/index.ts", ...workers },
  }),
  build({
    ...node,
    format: "cjs",
    outfile: "dist/node/index.cjs",
    entryPoints: ["src/index.ts"],
    define: { "import.meta.url": "moduleUrl" },
    banner: { js: 'const moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
  }),
  build({
    ...browser,
    outdir: "dist/browser",
    entryPoints: {
      index: "src/index.ts", ...workers, "asset-worker": "src/platform/browser/asset-worker.ts",
    },
  }),
]);
const types = spawnSync(
  "node_modules/.bin/tsc",
  ["--noEmit", "false", "--emitDeclarationOnly", "--declaration", "--rootDir", "src",
   "--outDir", "dist/types", "--project", "tsconfig.types.json"],
  { stdio: "inherit" },
);
process.exit(types.status ?? 1);
