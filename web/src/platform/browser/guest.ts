// A guest's worker in a browser.
//
// Owns how it receives what to run, and on which stack programs run.

import type { Start } from "../../guest/channel.js";
import type { Entry } from "../../guest/program.js";
import { onPort } from "./page-workers.js";

export function onStart(run: (start: Start) => void): void {
  onPort((port) => {
    port.onmessage = (event: MessageEvent<Start>) => run(event.data);
  });
}

/** In Chromium, a function that could be suspended has a stack of its own, which is twice as large as
 *  that of a worker. Nothing suspends it. */
export function onLargestStack(entry: Entry): Entry {
  const { promising } = WebAssembly as unknown as { promising?: (entry: Entry) => Entry };
  return promising ? promising(entry) : entry;
}
