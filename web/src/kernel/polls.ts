// Polls in the loops of programs, so that a computing program learns of signals.
//
// Owns `withPolls`, which adds to every loop of a module: if the word at the address of the signal
// flag is not 0, call `poll`, a new function at the end of the module. That function makes the
// system call POLL, which the worker answers. Rules: a module with an instruction that this does
// not know stays as it is; its programs learn of signals at their next system call.

import { scanFunction } from "./instructions.js";
import { leb, Output, Reader, signedLeb } from "./wasm-reader.js";

/** The number of the system call by which a program asks whether something has happened. */
export const POLL = 0x7fff_0000;

const IF = 0x04;

/** The code of `poll`, given the index of the imported function for system calls. */
export function pollBody(syscall: number): number[] {
  const zeros = [0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0];
  const code = [0, 0x41, ...signedLeb(POLL), ...zeros, 0x10, ...leb(syscall), 0x1a, 0x0b];
  return [...leb(code.length), ...code];
}

/** The body of the code section with polls, and with `poll` at its end; null if an instruction is
 *  not known. */
export function withPolls(
  code: Uint8Array, flag: number, poll: number, syscall: number,
): Uint8Array | null {
  const check = [0x41, ...signedLeb(flag | 0), 0xfe, 0x10, 2, 0, IF, 0x40, 0x10, ...leb(poll), 0x0b];
  const out = new Output(code.length + (code.length >> 2) + 1024);
  const reader = new Reader(code);
  const count = reader.u32();
  out.add(leb(count + 1));
  for (let left = count; left; left--) {
    const size = reader.u32();
    const end = reader.at + size;
    const scan = scanFunction(reader, end);
    if (scan === null) return null;
    out.add(leb(size + scan.loops.length * check.length));
    let from = end - size;
    for (const { at } of scan.loops) {
      out.add(code.subarray(from, at));
      out.add(check);
      from = at;
    }
    out.add(code.subarray(from, end));
    reader.at = end;
  }
  out.add(pollBody(syscall));
  return out.bytes();
}
