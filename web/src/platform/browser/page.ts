// The page's side in a browser.
//
// Owns starting the kernel's worker and those beside it, and what the browser must offer. Rules: a message about
// something missing says what to do.

import type { Driver } from "../../kernel/module-form.js";
import type { FromKernel, ToKernel } from "../../messages.js";
import { PageWorkers } from "./page-workers.js";
import { knowsFinalExceptions } from "../final-exceptions.js";

export interface KernelWorker {
  send(message: ToKernel, transfer: ArrayBuffer[]): void;
  /** Whether the page has to stay for it: pages stay. */
  hold(held: boolean): void;
  terminate(): void;
}

/** How programs run here, or what is missing, as a sentence. */
export function chooseDriver(wanted?: Driver): Driver | { problem: string } {
  const problem = missingRequirement();
  if (problem) return { problem };
  const workers = missingForWorkers();
  const canSuspend = "Suspending" in WebAssembly;
  if (wanted === "suspending" && !canSuspend) {
    return { problem: "the browser has no WebAssembly.Suspending: use Chrome or Edge 137, or newer" };
  }
  if (wanted === "suspending" || (!wanted && workers && canSuspend)) return "suspending";
  if (!workers) return "workers";
  const other = wanted ? "" : "; a browser with WebAssembly.Suspending (Chrome or Edge 137) needs neither";
  return { problem: workers + other };
}

/** What every sandbox needs and this page has not; null if nothing is missing. */
function missingRequirement(): string | null {
  if (typeof Worker === "undefined" || typeof WebAssembly === "undefined") {
    return "a sandbox needs workers and WebAssembly: use a browser of 2025 or newer";
  }
  if (!globalThis.isSecureContext) {
    return (
      "the page is not in a secure context, so that the browser denies storage and cryptography: " +
      "serve it over https, or from localhost"
    );
  }
  if (!knowsFinalExceptions()) {
    return (
      "the browser does not know WebAssembly's final exception handling, which the programs of the " +
      "sandbox use: use Chrome or Edge 137, Firefox 131, Safari 18.4, or newer"
    );
  }
  return null;
}

/** What programs in workers of their own need; null if nothing is missing. */
function missingForWorkers(): string | null {
  if (!globalThis.crossOriginIsolated) {
    return (
      "the page is not cross-origin isolated, so that the browser denies shared memory: send the " +
      "headers 'Cross-Origin-Opener-Policy: same-origin' and 'Cross-Origin-Embedder-Policy: " +
      "require-corp' with the page and with the scripts of the package"
    );
  }
  if (typeof SharedArrayBuffer === "undefined" || typeof Atomics.waitAsync !== "function") {
    return "the browser has no SharedArrayBuffer or no Atomics.waitAsync: use a newer browser";
  }
  return null;
}

export function defaultAssets(): string {
  return new URL("../../assets/", import.meta.url).href;
}

/** A directory as an absolute URL with a slash at its end. */
export function assetsPlace(assets: string | URL): string {
  const url = new URL(assets, globalThis.location.href).href;
  return url.endsWith("/") ? url : `${url}/`;
}

export function startKernel(
  receive: (message: FromKernel) => void, broken: (message: string) => void,
): KernelWorker {
  const worker = new Worker(new URL("./kernel-worker.js", import.meta.url), { type: "module" });
  const workers = new PageWorkers({
    assets: () => new Worker(new URL("./asset-worker.js", import.meta.url), { type: "module" }),
    guest: () => new Worker(new URL("./guest-worker.js", import.meta.url), { type: "module" }),
  }, broken);
  worker.onmessage = (event: MessageEvent<FromKernel>) => {
    if (!workers.receive(event.data)) receive(event.data);
  };
  worker.onerror = (event) => broken(event.message || "its script could not be loaded");
  return {
    send: (message, transfer) => worker.postMessage(message, transfer),
    hold: () => {},
    terminate: () => {
      worker.terminate();
      workers.endAll();
    },
  };
}

/** A directory to mount: a page has none, and the kernel says so. */
export function hostDirectory(path: string): string {
  return path;
}

async function fetched(url: string): Promise<Response> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`cannot read ${url}: the server says ${response.status}`);
  return response;
}

/** The programs below a URL, as its index.json lists them. */
export async function listPrograms(
  place: string | URL,
): Promise<{ file: string; read: () => Promise<Uint8Array> }[]> {
  const base = assetsPlace(place);
  const files: unknown = await (await fetched(`${base}index.json`)).json();
  if (!Array.isArray(files)) throw new Error(`${base}index.json is not an array of file names`);
  return files
    .filter((file): file is string => typeof file === "string" && /^[^/]+\.wasm$/.test(file))
    .map((file) => ({
      file,
      read: async () => new Uint8Array(await (await fetched(base + file)).arrayBuffer()),
    }));
}
