// The kernel's worker in a browser.
//
// Owns asking for workers, the assets as this worker sees them, and starting Pyodide from our own
// assets. Rules: assets are read by a worker of their own, so that this one can wait for them and
// so that unpacking and checking them does not delay the guests.

import { AssetError, missing, wrongHash } from "../../assets/asset-error.js";
import { gunzip } from "../../assets/inflate.js";
import { assetName, LAYOUT_FORMAT, type AssetIndex } from "../../assets/layout.js";
import { sha256 } from "../../assets/sha256.js";
import type { Start } from "../../guest/channel.js";
import { pyodideOptions, type CreateModule } from "../../kernel/pyodide-options.js";
import type { Pyodide } from "../../kernel/service.js";
import type { FromKernel, ToKernel } from "../../messages.js";
import {
  COUNT, FAILED, PROGRESS, TOO_SMALL, WAITING, type FromAssets, type ToAssets,
} from "./asset-messages.js";
import { askForWorker } from "./page-workers.js";

export interface GuestWorker {
  start(start: Start): void;
  terminate(): void;
}

export function spawnGuest(): GuestWorker {
  const { port, end } = askForWorker("guest");
  return { start: (start) => port.postMessage(start), terminate: end };
}

export function onMessage(receive: (message: ToKernel) => void): void {
  self.onmessage = (event: MessageEvent<ToKernel>) => receive(event.data);
}

export function send(message: FromKernel, transfer: ArrayBuffer[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

const round = new MessageChannel();
const soonCalled: (() => void)[] = [];
round.port1.onmessage = () => soonCalled.shift()!();

/** Call `act` after timers and messages have had their turn. */
export function soon(act: () => void): void {
  soonCalled.push(act);
  round.port2.postMessage(null);
}

// Assets.

const SHARED_BYTES = 1024 * 1024;

let base = "";
let assets: MessagePort;
let counter = 0;
let opened: { resolve(index: string): void; reject(error: Error): void };
const reading = new Map<
  number, { resolve(bytes: Uint8Array): void; reject(error: Error): void }
>();

interface Shared {
  state: SharedArrayBuffer;
  words: Int32Array;
  content: SharedArrayBuffer;
}

/** Memory that the worker of assets shares; null if the page must not share memory. */
const shared = globalThis.crossOriginIsolated ? sharedMemory() : null;

function sharedMemory(): Shared {
  const state = new SharedArrayBuffer(8);
  return { state, words: new Int32Array(state), content: new SharedArrayBuffer(SHARED_BYTES) };
}

function ask(message: ToAssets): void {
  assets.postMessage(message);
}

function received(message: FromAssets): void {
  if (message.kind === "opened") return opened.resolve(message.index);
  if (message.kind === "failed" && message.number === 0) {
    return opened.reject(new AssetError(message.message));
  }
  const waiting = reading.get(message.number);
  reading.delete(message.number);
  if (message.kind === "fetched") waiting?.resolve(message.bytes);
  else waiting?.reject(new AssetError(message.message));
}

export async function openAssets(place: string): Promise<AssetIndex> {
  base = place;
  assets = askForWorker("assets").port;
  assets.onmessage = (event: MessageEvent<FromAssets>) => received(event.data);
  const text = await new Promise<string>((resolve, reject) => {
    opened = { resolve, reject };
    ask({ kind: "open", base });
  });
  const index = JSON.parse(text) as AssetIndex;
  if (index.format !== LAYOUT_FORMAT) {
    throw new AssetError(`${base}index.json is of another version of the package`);
  }
  return index;
}

export function readAsset(hash: string): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    reading.set(++counter, { resolve, reject });
    ask({ kind: "fetch", number: counter, hash });
  });
}

/** Read an asset while this worker waits. */
export function readAssetNow(hash: string): Uint8Array {
  return shared ? readShared(hash, shared) : readRequested(hash);
}

/** The worker of assets reads it, and answers in shared memory. */
function readShared(hash: string, memory: Shared): Uint8Array {
  const { state, words } = memory;
  for (;;) {
    Atomics.store(words, PROGRESS, WAITING);
    ask({ kind: "fetchNow", hash, state, content: memory.content });
    while (Atomics.load(words, PROGRESS) === WAITING) Atomics.wait(words, PROGRESS, WAITING);
    const count = words[COUNT]!;
    if (words[PROGRESS] === TOO_SMALL) {
      memory.content = new SharedArrayBuffer(count);
      continue;
    }
    const bytes = new Uint8Array(memory.content, 0, count).slice();
    if (words[PROGRESS] === FAILED) throw new AssetError(new TextDecoder().decode(bytes));
    if (memory.content.byteLength > SHARED_BYTES) memory.content = new SharedArrayBuffer(SHARED_BYTES);
    return bytes;
  }
}

/** Without shared memory, only a request can wait. The browser's own cache may answer it. */
function readRequested(hash: string): Uint8Array {
  const url = base + assetName(hash);
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.responseType = "arraybuffer";
  try {
    request.send();
  } catch (error) {
    throw missing(url, String(error));
  }
  if (request.status !== 200) throw missing(url, `the server says ${request.status}`);
  let content: Uint8Array;
  try {
    content = gunzip(new Uint8Array(request.response as ArrayBuffer));
  } catch {
    throw wrongHash(url);
  }
  if (sha256(content) !== hash) throw wrongHash(url);
  return content;
}

// Pyodide.

const TYPES: Record<string, string> = {
  wasm: "application/wasm", zip: "application/zip", json: "application/json",
};

/** A zip file without files: its end record. */
const EMPTY_ZIP = new Uint8Array([0x50, 0x4b, 5, 6, ...new Array<number>(18).fill(0)]);
const LIBRARY = "python_stdlib.zip";

/** Pyodide fetches its files by URL; answer from the assets. */
async function withPyodideFiles<Result>(
  index: AssetIndex, place: string, needsLibrary: boolean, act: () => Promise<Result>,
): Promise<Result> {
  const fetchAny = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const name = url.startsWith(place) ? url.slice(place.length) : "";
    const hash = index.pyodide[name];
    if (hash === undefined) return fetchAny(input, init);
    const content = name === LIBRARY && !needsLibrary ? EMPTY_ZIP : await readAsset(hash);
    const type = TYPES[name.split(".").at(-1)!] ?? "application/octet-stream";
    return new Response(content as BodyInit, { headers: { "content-type": type } });
  };
  try {
    return await act();
  } finally {
    globalThis.fetch = fetchAny;
  }
}

/** Import a script that is an asset. */
async function importAsset(hash: string): Promise<{ default: CreateModule }> {
  const source = new Blob([(await readAsset(hash)) as BlobPart], { type: "text/javascript" });
  const url = URL.createObjectURL(source);
  try {
    return await import(/* @vite-ignore */ url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

export async function startPyodide(
  index: AssetIndex, snapshot: Uint8Array | null,
): Promise<Pyodide> {
  const place = `${base}pyodide/`;
  const [{ loadPyodide }, { default: create }] = await Promise.all([
    import(/* @vite-ignore */ `${place}pyodide.mjs`), importAsset(index.pyodide["pyodide.asm.mjs"]!),
  ]);
  const options = { indexURL: place, ...pyodideOptions(create, snapshot) };
  return withPyodideFiles(index, place, snapshot === null, () => loadPyodide(options));
}
