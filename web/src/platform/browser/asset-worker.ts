// The worker that reads assets in a browser: fetch, check, unpack, keep.
//
// Owns the Cache API. Rules: an asset is used only if its content has the hash that its name says. A
// kept asset that fails the check is fetched again. If the browser denies storage, everything works
// without it.

import { missing, wrongHash } from "../../assets/asset-error.js";
import { assetName, INDEX_NAME } from "../../assets/layout.js";
import {
  COUNT, DONE, FAILED, PROGRESS, TOO_SMALL, type Fetch, type FetchNow, type FromAssets,
  type ToAssets,
} from "./asset-messages.js";
import { onPort } from "./page-workers.js";

const CACHE_NAME = "wasmsand-assets-1";
const encoder = new TextEncoder();

let base = "";
let cache: Cache | null = null;
/** The last asset that did not fit into the memory of a kernel that waits. */
let waiting: { hash: string; bytes: Uint8Array } | null = null;

async function open(place: string): Promise<string> {
  base = place;
  try {
    cache = await caches.open(CACHE_NAME);
  } catch (error) {
    console.warn(`wasmsand: the browser keeps nothing, so each visit loads all anew: ${error}`);
  }
  return readIndex();
}

/** The index: fetched anew if the server can be reached, else the one of the last time. */
async function readIndex(): Promise<string> {
  const url = base + INDEX_NAME;
  let why: string;
  try {
    const response = await fetch(url, { cache: "no-cache" });
    if (response.ok) {
      void cache?.put(url, response.clone()).catch(() => {});
      return await response.text();
    }
    why = `the server says ${response.status}`;
  } catch (error) {
    why = String(error);
  }
  const kept = await cache?.match(url);
  if (kept) return kept.text();
  throw missing(url, why);
}

async function read(hash: string): Promise<Uint8Array> {
  const url = base + assetName(hash);
  const kept = await cache?.match(url).catch(() => undefined);
  if (kept) {
    try {
      return await unpacked(hash, url, await kept.arrayBuffer());
    } catch {
      await cache?.delete(url);
    }
  }
  let packed: ArrayBuffer;
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the server says ${response.status}`);
    packed = await response.arrayBuffer();
  } catch (error) {
    throw missing(url, error instanceof Error ? error.message : String(error));
  }
  const bytes = await unpacked(hash, url, packed);
  const stored = new Response(packed, { headers: { "content-type": "application/octet-stream" } });
  void cache?.put(url, stored).catch(() => {}); // storage may be full: it is read again next time
  return bytes;
}

async function unpacked(hash: string, url: string, packed: ArrayBuffer): Promise<Uint8Array> {
  let content: ArrayBuffer;
  try {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    content = await new Response(stream).arrayBuffer();
  } catch {
    throw wrongHash(url);
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== hash) throw wrongHash(url);
  return new Uint8Array(content);
}

let kernel: MessagePort;

function send(message: FromAssets, transfer: Transferable[] = []): void {
  kernel.postMessage(message, transfer);
}

async function fetchOne({ number, hash }: Fetch): Promise<void> {
  try {
    const bytes = await read(hash);
    send({ kind: "fetched", number, bytes }, [bytes.buffer]);
  } catch (error) {
    send({ kind: "failed", number, message: (error as Error).message });
  }
}

async function fetchNow({ hash, state, content }: FetchNow): Promise<void> {
  const words = new Int32Array(state);
  const target = new Uint8Array(content);
  let progress = DONE;
  try {
    const bytes = waiting?.hash === hash ? waiting.bytes : await read(hash);
    waiting = null;
    words[COUNT] = bytes.length;
    if (bytes.length <= target.length) target.set(bytes);
    else {
      waiting = { hash, bytes };
      progress = TOO_SMALL;
    }
  } catch (error) {
    const message = encoder.encode((error as Error).message).subarray(0, target.length);
    target.set(message);
    words[COUNT] = message.length;
    progress = FAILED;
  }
  Atomics.store(words, PROGRESS, progress);
  Atomics.notify(words, PROGRESS);
}

function receive(message: ToAssets): void {
  if (message.kind === "fetch") void fetchOne(message);
  else if (message.kind === "fetchNow") void fetchNow(message);
  else {
    open(message.base).then(
      (index) => send({ kind: "opened", index }),
      (error: Error) => send({ kind: "failed", number: 0, message: error.message }),
    );
  }
}

onPort((port) => {
  kernel = port;
  kernel.onmessage = (event: MessageEvent<ToAssets>) => receive(event.data);
});
