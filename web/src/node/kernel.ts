import { readFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { Start } from "../channel.js";

export interface GuestWorker {
  start(start: Start): void;
  terminate(): void;
}

const settings = { image: process.env.WASMSAND_IMAGE!, source: process.env.WASMSAND_SRC! };

export function spawnGuest(): GuestWorker {
  const worker = new Worker(new URL("./guest-worker.mjs", import.meta.url));
  worker.unref();
  return {
    start: (start) => worker.postMessage(start),
    terminate: () => void worker.terminate(),
  };
}

let assets: Map<string, string> | undefined;

export async function readAsset(key: string): Promise<Uint8Array> {
  if (!assets) {
    assets = new Map();
    const manifest = JSON.parse(readFileSync(`${settings.image}/manifest.json`, "utf8"));
    for (const program of manifest.programs) {
      assets.set(program.sha256, program.file);
      if (program.prepared) assets.set(program.prepared.sha256, program.prepared.file);
    }
  }
  return readFile(`${settings.image}/${assets.get(key)}`);
}

export async function loadPython(): Promise<any> {
  const { loadPyodide } = await import("pyodide");
  const python = await loadPyodide();
  python.FS.mkdirTree("/src");
  python.FS.mkdirTree("/image");
  python.mountNodeFS("/src", settings.source);
  python.mountNodeFS("/image", settings.image);
  python.runPython("import sys; sys.path.insert(0, '/src')");
  return python;
}
