// Makes the playground in two forms: site/, complete, for any static web server, and the front end
// alone in src/wasmsand/_playground, which `wasmsand serve --playground` sends.
//
// Usage: node scripts/make-site.mjs [--front-end]. Rules: playground/headers.json is the only source
// of the headers, and of the policy in the page itself. Assets are hard links, if possible.

import {
  copyFileSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync,
  writeFileSync,
} from "node:fs";
import { build } from "esbuild";
import { browserOptions, workers } from "./bundles.mjs";

const FRONT_END = "../src/wasmsand/_playground";
const PAGE = "index.html";

process.chdir(new URL("..", import.meta.url).pathname);
const headers = JSON.parse(readFileSync("playground/headers.json", "utf8"));

/** The page for a back end: "page" or "server". */
function pageFor(backend) {
  // `frame-ancestors` works in a header only.
  const policy = headers[PAGE]["Content-Security-Policy"].replace(/; frame-ancestors [^;]+/, "");
  return readFileSync(`playground/${PAGE}`, "utf8")
    .replace("{backend}", backend)
    .replace("{policy}", policy);
}

/** The licences of what the bundle contains. */
function licences() {
  const packages = ["@xterm/xterm", "@xterm/addon-fit"];
  return packages
    .map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`)
    .join("\n\n");
}

async function makeFrontEnd(target, backend, further) {
  const place = `${target}.new`;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  await build({
    ...browserOptions, outdir: place, minify: true, sourcemap: false,
    entryPoints: { main: "playground/src/main.ts", ...further },
  });
  writeFileSync(`${place}/${PAGE}`, pageFor(backend));
  copyFileSync("playground/headers.json", `${place}/headers.json`);
  writeFileSync(`${place}/licences.txt`, licences());
  return () => {
    rmSync(target, { recursive: true, force: true });
    renameSync(place, target);
  };
}

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

(await makeFrontEnd(FRONT_END, "server", {}))();
console.log(`make-site: src/wasmsand/_playground is the page of 'wasmsand serve --playground'`);
if (!process.argv.includes("--front-end")) {
  const finish = await makeFrontEnd("site", "page", {
    "service-worker": "playground/src/service-worker.ts", ...workers,
  });
  copyTree("assets", "site.new/assets");
  writeFileSync("site.new/network.json", JSON.stringify({ allow: [], deny: [] }));
  finish();
  console.log("make-site: site/ is the playground");
}
