// The messages between the kernel's worker and the worker that reads assets.
//
// Owns their shapes. Rules: an answer to a request that waits goes into shared memory, because the
// kernel's worker does not receive messages while it waits.

/** Read an asset, and send a message when it is there. */
export interface Fetch {
  kind: "fetch";
  number: number;
  hash: string;
}

/** Read an asset for a kernel that waits. `state` and `content` are shared. */
export interface FetchNow {
  kind: "fetchNow";
  hash: string;
  state: SharedArrayBuffer;
  content: SharedArrayBuffer;
}

export interface Open {
  kind: "open";
  base: string;
}

export type ToAssets = Open | Fetch | FetchNow;

export type FromAssets =
  | { kind: "opened"; index: string }
  | { kind: "fetched"; number: number; bytes: Uint8Array }
  | { kind: "failed"; number: number; message: string };

/** Words of `state`: how far it is, and how many bytes the content has. */
export const PROGRESS = 0;
export const COUNT = 1;
export const WAITING = 0, DONE = 1, FAILED = 2, TOO_SMALL = 3;
