// What runs guests: the interface that Python and the kernel's worker use.
//
// Owns `GuestHost`. Two classes implement it: `WorkerGuests`, with a worker for each guest, and
// `SuspendedGuests`, with all guests in the kernel's worker. Rules: the special answers are those of
// web/host.py.

import type { FunctionOffer } from "../guest/channel.js";
import type { Service } from "./service.js";

export const BLOCKED = 2 ** 40;
export const LEAVE = BLOCKED + 1;
export const HANDLE = BLOCKED + 2;

export interface GuestHost {
  /** Serve the guests of this machine, from now on. */
  serveWith(service: Service, functions: FunctionOffer[]): void;
  /** Whether a guest computes. */
  readonly computing: boolean;

  // Called by Python (web/host.py).
  start_guest(
    guest: number, module: number, memory: number, entry: string, variables: string,
    buffer: number, argument: number,
  ): number;
  answer(number: number, result: number): void;
  end_guest(number: number, computing: boolean): void;
}

/** The variables of a start: a line for each, name, tab, value. */
export function variablesOf(lines: string): [name: string, value: number][] {
  if (!lines) return [];
  return lines.split("\n").map((line) => {
    const [name, value] = line.split("\t") as [string, string];
    return [name, Number(value)];
  });
}
