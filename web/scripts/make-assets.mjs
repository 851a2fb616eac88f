// Makes assets/: everything that a sandbox fetches, compressed and named by content.
//
// Usage: node scripts/make-assets.mjs [--image DIRECTORY] [--packages DIRECTORY] [--no-snapshot]
// Rules: an asset that is there already is kept, so a second run is quick; assets that nothing
// names any more are removed. src/assets/layout.ts describes the result.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync, copyFileSync, cpSync, existsSync, fstatSync, mkdirSync, openSync, readdirSync, readFileSync,
  readSync, renameSync, rmSync, writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { kernelArchive, kernelSnapshot } from "./kernel-in-pyodide.mjs";

const PIECE_BYTES = 256 * 1024;
const LARGE_BYTES = 32 * 1024 * 1024; // packed less, and more quickly
const BEGINNING_BYTES = 4096; // as much as machine/image_directory.py reads of each program

const root = new URL("../..", import.meta.url).pathname;
const web = join(root, "web");
const { values: options } = parseArgs({
  options: {
    image: { type: "string", default: join(root, "src/wasmsand/_image") },
    packages: { type: "string", default: join(root, "src/wasmsand_packages/_image") },
    "no-snapshot": { type: "boolean", default: false },
  },
});
const target = join(web, "assets");
const pyodideDirectory = join(web, "node_modules/pyodide");

// The same code that rewrites guests' own programs in the kernel's worker.
const tool = join(web, "dist/tools/forms.mjs");
await build({
  bundle: true, format: "esm", platform: "node", outfile: tool, logLevel: "warning",
  stdin: {
    contents:
      'export { reshape } from "./module-form.js"; export { storeForm } from "./stored-form.js";',
    resolveDir: join(web, "src/kernel"),
  },
});
const { reshape, storeForm } = await import(tool);

const named = new Set(["index.json", "pyodide", "licences"]);
let bytesStored = 0;

function add(content) {
  const hash = createHash("sha256").update(content).digest("hex");
  const name = `${hash}.bin`;
  const path = join(target, name);
  if (!named.has(name) && !existsSync(path)) {
    const packed = gzipSync(content, { level: content.length > LARGE_BYTES ? 6 : 9 });
    bytesStored += packed.length;
    writeFileSync(`${path}.new`, packed);
    renameSync(`${path}.new`, path);
  }
  named.add(name);
  return hash;
}

function addPieces(path) {
  const file = openSync(path, "r");
  const { size } = fstatSync(file);
  const pieces = [];
  for (let at = 0; at < size; at += PIECE_BYTES) {
    const piece = Buffer.alloc(Math.min(PIECE_BYTES, size - at));
    readSync(file, piece, 0, piece.length, at);
    pieces.push(add(piece));
  }
  closeSync(file);
  return { size, pieceBytes: PIECE_BYTES, pieces };
}

function addImage(directory, further) {
  const text = readFileSync(join(directory, "manifest.json"));
  const manifest = JSON.parse(text);
  const forms = {};
  const files = [{ name: "manifest.json", size: text.length, asset: add(text) }];
  const beginnings = [];
  let beginningAt = 0;
  for (const program of manifest.programs) {
    const content = readFileSync(join(directory, program.file));
    const asset = add(content);
    if (asset !== program.sha256) throw new Error(`${program.file} is not what the manifest says`);
    files.push({ name: program.file, size: content.length, asset, beginningAt });
    forms[asset] = add(storeForm(reshape(content, "workers")));
    beginnings.push(content.subarray(0, BEGINNING_BYTES));
    beginningAt += beginnings.at(-1).length;
    const prepared = program.prepared;
    if (prepared) {
      const memory = readFileSync(join(directory, prepared.file));
      files.push({ name: prepared.file, size: memory.length, asset: add(memory) });
    }
  }
  files.push({ name: manifest.contents.file, ...addPieces(join(directory, manifest.contents.file)) });
  for (const [name, content] of Object.entries(further)) {
    files.push({ name, size: content.length, asset: add(content) });
  }
  const layout = {
    files, forms, beginnings: add(Buffer.concat(beginnings)), beginningBytes: BEGINNING_BYTES,
  };
  return add(Buffer.from(JSON.stringify(layout)));
}

function addPyodide() {
  const version = JSON.parse(readFileSync(join(pyodideDirectory, "package.json"), "utf8")).version;
  copyFileSync(join(pyodideDirectory, "pyodide.mjs"), join(target, "pyodide", "pyodide.mjs"));
  const fetched = {};
  for (const name of ["pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"]) {
    fetched[name] = add(readFileSync(join(pyodideDirectory, name)));
  }
  // The list of Pyodide's packages, of which the kernel needs none.
  const lock = JSON.parse(readFileSync(join(pyodideDirectory, "pyodide-lock.json"), "utf8"));
  fetched["pyodide-lock.json"] = add(Buffer.from(JSON.stringify({ info: lock.info, packages: {} })));
  return { version, fetched };
}

/** What the programs of an image are made of, and under which licences. */
function copyLicences(directory, name) {
  const place = join(target, "licences", name);
  cpSync(join(directory, "licences"), place, { recursive: true });
  copyFileSync(join(directory, "LICENCES.md"), join(place, "LICENCES.md"));
}

/** The directory with h11, which parses HTTP, and packaging, which parses versions. */
function pythonPackages() {
  const code = "import h11, packaging, os; print(os.path.dirname(h11.__path__[0]))";
  for (const python of [join(root, ".venv/bin/python"), "python3"]) {
    const { status, stdout } = spawnSync(python, ["-c", code], { encoding: "utf8" });
    if (status === 0) return stdout.trim();
  }
  console.error("make-assets: Python lacks a library: run 'make build' first, or pip install h11 packaging");
  process.exit(1);
}

if (!existsSync(join(options.image, "manifest.json"))) {
  console.error(`make-assets: no user space in ${options.image}: run 'make build' first`);
  process.exit(1);
}
for (const name of ["pyodide", "licences"]) rmSync(join(target, name), { recursive: true, force: true });
mkdirSync(join(target, "pyodide"), { recursive: true });
const pyodide = addPyodide();
const kernel = await kernelArchive(join(root, "src"), pythonPackages());
const layout = addImage(options.image, {
  "kernel.zip": kernel,
  "python_stdlib.zip": readFileSync(join(pyodideDirectory, "python_stdlib.zip")),
});
// The second stage of the build, which takes long: it may be missing.
const hasPackages = existsSync(join(options.packages, "manifest.json"));
const packages = hasPackages ? addImage(options.packages, {}) : null;
if (!hasPackages) console.log("make-assets: no compiled packages: 'make packages' builds them");
copyLicences(options.image, "programs");
if (hasPackages) copyLicences(options.packages, "packages");
let snapshot = null;
if (!options["no-snapshot"]) {
  snapshot = add(await kernelSnapshot(kernel, options.image));
}
const index = {
  format: 1,
  layout,
  packages,
  pyodide: pyodide.fetched,
  pyodideVersion: pyodide.version,
  snapshot,
};
writeFileSync(join(target, "index.json"), JSON.stringify(index, null, 1));
for (const name of readdirSync(target)) if (!named.has(name)) rmSync(join(target, name));
console.log(`make-assets: ${named.size} assets in ${target}, ${bytesStored} bytes new`);
process.exit(0);
