// What a running program is, whichever worker it runs in.
//
// Owns the phases of a fork, the kinds of traps, and how a program is left.

/** A function of a program by which it begins. */
export type Entry = (argument?: number) => void | Promise<void>;

/** Thrown to leave a program whose process has ended. */
export const LEFT = { left: true };

export const EAGAIN = 11;

/** Where a program is in a fork by Asyncify. */
export const enum Phase {
  None,
  Unwinding,
  Rewinding,
}

/** The values of `TrapKind` in engine/protocol.py. */
export const TRAP_KINDS = [
  "out of bounds memory access", "stack overflow", "bad indirect call",
  "integer division by zero or overflow", "unreachable", "uncaught WebAssembly exception", "trap",
];

/** What engines say of a trap, and its index in `TRAP_KINDS`. */
const TRAPS: [RegExp, number][] = [
  [/out of bounds|unaligned/i, 0],
  [/call stack|recursion/i, 1],
  [/table|signature|null function|indirect/i, 2],
  [/divi|remainder|overflow|unrepresentable|float/i, 3],
  [/unreachable/i, 4],
];

/** The index of a trap's kind in `TRAP_KINDS`. */
export function kindOfTrap(error: unknown): number {
  if (error instanceof RangeError) return 1;
  if (error instanceof WebAssembly.Exception) return 5;
  const message = error instanceof Error ? error.message : "";
  for (const [pattern, kind] of TRAPS) if (pattern.test(message)) return kind;
  return 6;
}
