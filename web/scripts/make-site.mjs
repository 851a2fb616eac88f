// Makes site/: the playground, complete, for any static web server that sends the two headers.
//
// Rules: assets are hard links to those in assets/, if the file system allows it.

import { copyFileSync, linkSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { build } from "esbuild";
import { browserOptions, workers } from "./bundles.mjs";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("site", { recursive: true, force: true });
mkdirSync("site", { recursive: true });
await build({
  ...browserOptions, outdir: "site", minify: true, sourcemap: false,
  entryPoints: {
    main: "playground/src/main.ts", "service-worker": "playground/src/service-worker.ts", ...workers,
  },
});
copyFileSync("playground/index.html", "site/index.html");

function copyTree(from, to) {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const [source, target] = [`${from}/${name}`, `${to}/${name}`];
    if (statSync(source).isDirectory()) copyTree(source, target);
    else {
      try {
        linkSync(source, target);
      } catch {
        copyFileSync(source, target);
      }
    }
  }
}
copyTree("assets", "site/assets");
console.log("make-site: site/ is the playground");
