import { parentPort } from "node:worker_threads";
import type { Start } from "../channel.js";

export function onStart(run: (start: Start) => void): void {
  parentPort!.on("message", run);
}
