// A guest's worker in a browser.
//
// Owns how it receives what to run.

import type { Start } from "../../guest/channel.js";

export function onStart(run: (start: Start) => void): void {
  self.onmessage = (event: MessageEvent<Start>) => run(event.data);
}
