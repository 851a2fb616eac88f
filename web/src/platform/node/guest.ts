// A guest's worker on Node.
//
// Owns how it receives what to run.

import { parentPort } from "node:worker_threads";
import type { Start } from "../../guest/channel.js";

export function onStart(run: (start: Start) => void): void {
  parentPort!.on("message", run);
}
