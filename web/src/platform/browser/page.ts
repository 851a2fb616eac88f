// The page's side in a browser.
//
// Owns starting the kernel's worker, and what the browser must offer. Rules: a message about
// something missing says what to do.

import type { Driver } from "../../kernel/module-form.js";
import type { FromKernel, ToKernel } from "../../messages.js";

export interface KernelWorker {
  send(message: ToKernel, transfer: ArrayBuffer[]): void;
  /** Whether the page has to stay for it: pages stay. */
  hold(held: boolean): void;
  terminate(): void;
}

/** A module whose function catches an exception in the final form: `try_table` and `exnref`. */
const FINAL_EXCEPTIONS = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 15, 1, 13, 0, 0x02, 0x69,
  0x1f, 0x40, 1, 3, 0, 0x0b, 0x0f, 0x0b, 0x1a, 0x0b,
]);

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
  if (!WebAssembly.validate(FINAL_EXCEPTIONS)) {
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
  worker.onmessage = (event: MessageEvent<FromKernel>) => receive(event.data);
  worker.onerror = (event) => broken(event.message || "its script could not be loaded");
  return {
    send: (message, transfer) => worker.postMessage(message, transfer),
    hold: () => {},
    terminate: () => worker.terminate(),
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
