// A guest's worker on Node.
//
// Owns how it receives what to run, and on which stack programs run.

import { parentPort } from "node:worker_threads";
import type { Start } from "../../guest/channel.js";
import type { Entry } from "../../guest/program.js";

export function onStart(run: (start: Start) => void): void {
  parentPort!.on("message", run);
}

/** Workers are started with a large stack. */
export function onLargestStack(entry: Entry): Entry {
  return entry;
}
