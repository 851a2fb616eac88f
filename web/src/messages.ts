// The messages between a page's thread and the worker of the kernel.
//
// Owns their shapes. Rules: bytes are transferred, not copied, where the sender has no more use for
// them.

import type { Driver } from "./kernel/module-form.js";

/** From the page: boot. The first message, once. */
export interface BootMessage {
  kind: "boot";
  /** Where the assets are: a URL, or a directory on Node. */
  assets: string;
  /** Whether Pyodide may start from the stored memory. */
  snapshot: boolean;
  driver: Driver;
}

/** From the page: a request to the service in Python. */
export interface RequestMessage {
  kind: "request";
  number: number;
  method: string;
  params: string;
  data: Uint8Array | null;
}

/** From the page: its listener has got so many bytes of output. More comes only after that. */
export interface TakenMessage {
  kind: "taken";
  handle: number;
  bytes: number;
}

export type ToKernel = BootMessage | RequestMessage | TakenMessage;

/** How the kernel started. */
export interface BootReport {
  /** Whether Pyodide started from the stored memory. */
  fromSnapshot: boolean;
  milliseconds: number;
  /** How programs run: "workers": each in a worker, with shared memory; "suspending": in the kernel's
   *  worker, by WebAssembly's stack switching; "server": on a server. */
  driver: Driver | "server";
}

/** An error as the service describes it. */
export interface Failure {
  type: string;
  errno: string;
  message: string;
  path?: string;
}

export type FromKernel =
  | { kind: "booted"; report: BootReport }
  | { kind: "bootFailed"; failure: Failure }
  | { kind: "reply"; number: number; result: string; data: Uint8Array | null }
  | { kind: "failed"; number: number; failure: Failure }
  | { kind: "event"; handle: number; event: string; data: Uint8Array | null }
  | { kind: "broken"; message: string };
