// The page's side on Node: the thread that uses a sandbox.
//
// Owns starting the kernel's worker, and what Node must offer. Rules: a worker that waits for
// requests does not keep the process alive; one that owes an answer does.

import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import type { Driver } from "../../kernel/module-form.js";
import type { FromKernel, ToKernel } from "../../messages.js";
import { knowsFinalExceptions, knowsLegacyExceptions } from "../final-exceptions.js";

export interface KernelWorker {
  send(message: ToKernel, transfer: ArrayBuffer[]): void;
  /** Whether the process has to stay for it. */
  hold(held: boolean): void;
  terminate(): void;
}

/** The oldest Node in which the tests run. */
const NODE_LEAST = 20;
/** The first one without the fault that `avoidFatalError` describes, as far as is known. */
const NODE_MENDED = 24;
const nodeMajor = Number.parseInt(process.versions.node);

/** How programs run here, or what is missing, as a sentence. */
export function chooseDriver(wanted: Driver = "workers"): Driver | { problem: string } {
  if (nodeMajor < NODE_LEAST || !(knowsFinalExceptions() || knowsLegacyExceptions())) {
    const problem =
      `Node ${process.versions.node} cannot run the programs of the sandbox, which use WebAssembly's ` +
      `exception handling: use Node ${NODE_LEAST} or newer`;
    return { problem };
  }
  if (wanted === "suspending" && !("Suspending" in WebAssembly)) {
    return { problem: "this Node has no WebAssembly.Suspending: leave out the option 'driver'" };
  }
  return wanted;
}

export function defaultAssets(): string {
  return fileURLToPath(new URL("../../assets/", import.meta.url));
}

export function assetsPlace(assets: string | URL): string {
  return typeof assets === "string" ? assets : fileURLToPath(assets);
}

/** The V8 of Node 20 and 22 can end the process with "unreachable code": when it discards the optimised
 *  code of a function during that function's call of WebAssembly, if the call returns an object. Pyodide
 *  has such calls. The flag turns off one optimisation, for all threads. */
function avoidFatalError(): void {
  if (nodeMajor < NODE_MENDED) setFlagsFromString("--no-turbo-inline-js-wasm-calls");
}

export function startKernel(
  receive: (message: FromKernel) => void, broken: (message: string) => void,
): KernelWorker {
  avoidFatalError();
  const worker = new Worker(new URL("./kernel-worker.js", import.meta.url), { execArgv: [] });
  worker.on("message", receive);
  worker.on("error", (error: Error) => broken(String(error.message).slice(0, 2000)));
  worker.on("exit", (code) => broken(`the worker of the kernel ended with ${code}`));
  return {
    send: (message, transfer) => worker.postMessage(message, transfer),
    hold: (held) => (held ? worker.ref() : worker.unref()),
    terminate: () => void worker.terminate(),
  };
}

/** A directory to mount, as an absolute path. */
export function hostDirectory(path: string): string {
  return resolve(path);
}

/** The programs in a directory: names and how to read them. */
export async function listPrograms(
  place: string | URL,
): Promise<{ file: string; read: () => Promise<Uint8Array> }[]> {
  const directory = assetsPlace(place);
  const files = (await readdir(directory)).filter((file) => file.endsWith(".wasm")).sort();
  return files.map((file) => ({ file, read: () => readFile(join(directory, file)) }));
}
