import { build } from "esbuild";
const alias = { "#platform/guest": "./src/node/guest.ts", "#platform/kernel": "./src/node/kernel.ts" };
const common = { bundle: true, format: "esm", platform: "node", alias, external: ["pyodide"], outExtension: { ".js": ".mjs" } };
await build({ ...common, entryPoints: { "guest-worker": "src/guest-worker.ts", try: "try.ts" }, outdir: "dist" });
