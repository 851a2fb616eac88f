// The kernel's worker on Node.
//
// Owns reading assets from a directory, starting workers for guests, and starting Pyodide from its
// npm package. Rules: an asset is used only if its content has the hash that its name says.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parentPort, Worker } from "node:worker_threads";
import { gunzip, gunzipSync } from "node:zlib";
import { loadPyodide, version } from "pyodide";
import { missing, wrongHash } from "../../assets/asset-error.js";
import { assetName, INDEX_NAME, LAYOUT_FORMAT, type AssetIndex } from "../../assets/layout.js";
import type { Start } from "../../guest/channel.js";
import { pyodideOptions, type CreateModule } from "../../kernel/pyodide-options.js";
import type { Pyodide } from "../../kernel/service.js";
import type { FromKernel, ToKernel } from "../../messages.js";

export interface GuestWorker {
  start(start: Start): void;
  terminate(): void;
}

/** Python expects as much for programs with deep recursion. The system gives memory as it is used. */
const STACK_MB = 32;

export function spawnGuest(): GuestWorker {
  const script = new URL("./guest-worker.js", import.meta.url);
  const worker = new Worker(script, { execArgv: [], resourceLimits: { stackSizeMb: STACK_MB } });
  worker.unref();
  return {
    start: (start) => worker.postMessage(start),
    terminate: () => void worker.terminate(),
  };
}

export function onMessage(receive: (message: ToKernel) => void): void {
  parentPort!.on("message", receive);
}

export function send(message: FromKernel, transfer: ArrayBuffer[] = []): void {
  parentPort!.postMessage(message, transfer);
}

/** Call `act` after timers and messages have had their turn. */
export const soon: (act: () => void) => void = setImmediate;

// Assets.

let directory = "";
const unpack = promisify(gunzip);

export async function openAssets(place: string): Promise<AssetIndex> {
  directory = place;
  let text: string;
  try {
    text = await readFile(join(directory, INDEX_NAME), "utf8");
  } catch (error) {
    throw missing(join(directory, INDEX_NAME), (error as Error).message);
  }
  const index = JSON.parse(text) as AssetIndex;
  if (index.format !== LAYOUT_FORMAT) throw missing(INDEX_NAME, "it is of another version");
  return index;
}

function checked(hash: string, bytes: Buffer): Uint8Array {
  if (createHash("sha256").update(bytes).digest("hex") !== hash) throw wrongHash(pathOf(hash));
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function pathOf(hash: string): string {
  return join(directory, assetName(hash));
}

function refused(hash: string, error: unknown): Error {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code.startsWith("Z_") || code === "ERR_BUFFER_TOO_LARGE") return wrongHash(pathOf(hash));
  return missing(pathOf(hash), (error as Error).message);
}

export async function readAsset(hash: string): Promise<Uint8Array> {
  let bytes: Buffer;
  try {
    bytes = await unpack(await readFile(pathOf(hash)));
  } catch (error) {
    throw refused(hash, error);
  }
  return checked(hash, bytes);
}

export function readAssetNow(hash: string): Uint8Array {
  let bytes: Buffer;
  try {
    bytes = gunzipSync(readFileSync(pathOf(hash)));
  } catch (error) {
    throw refused(hash, error);
  }
  return checked(hash, bytes);
}

/** Start Pyodide, from a stored memory if there is one. */
export async function startPyodide(
  index: AssetIndex, snapshot: Uint8Array | null,
): Promise<Pyodide> {
  if (index.pyodideVersion !== version) {
    throw missing(INDEX_NAME, `it was made for Pyodide ${index.pyodideVersion}, not ${version}`);
  }
  // @ts-expect-error the module has no types
  const create = (await import("pyodide/pyodide.asm.mjs")).default as CreateModule;
  return (await loadPyodide(pyodideOptions(create, snapshot))) as unknown as Pyodide;
}
