// Polls in the loops of programs, so that a computing program learns of signals.
//
// Owns `withPolls`, which adds to every loop of a module: if the word at the address of the signal
// flag is not 0, call `poll`, a new function at the end of the module. That function makes the
// system call POLL, which the worker answers. Rules: a module with an instruction that this does
// not know stays as it is; its programs learn of signals at their next system call.

import { leb, signedLeb, Reader, Refused } from "./wasm-reader.js";

/** The number of the system call by which a program asks whether something has happened. */
export const POLL = 0x7fff_0000;

const BLOCK = 0x02, LOOP = 0x03, IF = 0x04, TRY = 0x06, TRY_TABLE = 0x1f, BR_TABLE = 0x0e;

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
    const places = loops(reader, end);
    if (places === null) return null;
    out.add(leb(size + places.length * check.length));
    let from = end - size;
    for (const place of places) {
      out.add(code.subarray(from, place));
      out.add(check);
      from = place;
    }
    out.add(code.subarray(from, end));
    reader.at = end;
  }
  out.add(pollBody(syscall));
  return out.bytes();
}

/** Bytes that grow. */
class Output {
  private length = 0;
  private space: Uint8Array;

  constructor(size: number) {
    this.space = new Uint8Array(size);
  }

  add(piece: Uint8Array | number[]): void {
    if (this.length + piece.length > this.space.length) {
      const larger = new Uint8Array(2 * this.space.length + piece.length);
      larger.set(this.space);
      this.space = larger;
    }
    this.space.set(piece, this.length);
    this.length += piece.length;
  }

  bytes(): Uint8Array {
    return this.space.subarray(0, this.length);
  }
}

/** Where the loops of a function begin; null if an instruction is not known. */
function loops(reader: Reader, end: number): number[] | null {
  const found: number[] = [];
  for (let left = reader.u32(); left; left--) {
    reader.skipLeb();
    reader.skipType();
  }
  while (reader.at < end) {
    const code = reader.byte();
    if (code === LOOP) {
      reader.skipBlockType();
      found.push(reader.at);
    } else if (!skipOperands(reader, code)) return null;
  }
  return found;
}

function skipOperands(reader: Reader, code: number): boolean {
  if (code >= 0x45 && code <= 0xc4) return true;
  if (code >= 0x28 && code <= 0x3e) return reader.skipMemoryOperand();
  if (code >= 0x20 && code <= 0x26) return reader.skipLeb();
  switch (code) {
    case 0x00: case 0x01: case 0x05: case 0x0a: case 0x0b: case 0x0f: case 0x19: case 0x1a:
    case 0x1b: case 0xd1: case 0xd3: case 0xd4:
      return true;
    case BLOCK: case IF: case TRY:
      return reader.skipBlockType();
    case 0x07: case 0x08: case 0x09: case 0x0c: case 0x0d: case 0x10: case 0x12: case 0x14:
    case 0x15: case 0x18: case 0x3f: case 0x40: case 0x41: case 0x42: case 0xd0: case 0xd2:
    case 0xd5: case 0xd6:
      return reader.skipLeb();
    case 0x11: case 0x13:
      return reader.skipLeb() && reader.skipLeb();
    case BR_TABLE:
      for (let left = reader.u32(); left >= 0; left--) reader.skipLeb();
      return true;
    case 0x1c:
      for (let left = reader.u32(); left; left--) reader.skipType();
      return true;
    case TRY_TABLE:
      reader.skipBlockType();
      for (let left = reader.u32(); left; left--) {
        if (reader.byte() < 2) reader.skipLeb();
        reader.skipLeb();
      }
      return true;
    case 0x43:
      return reader.skip(4);
    case 0x44:
      return reader.skip(8);
    case 0xfc:
      return skipBulkOperands(reader, reader.u32());
    case 0xfd:
      return skipVectorOperands(reader, reader.u32());
    case 0xfe:
      return reader.u32() === 3 ? reader.skip(1) : reader.skipMemoryOperand();
    default:
      return false;
  }
}

function skipBulkOperands(reader: Reader, code: number): boolean {
  if (code <= 7) return true;
  if (code > 17) return false;
  const two = code === 8 || code === 10 || code === 12 || code === 14;
  return reader.skipLeb() && (!two || reader.skipLeb());
}

function skipVectorOperands(reader: Reader, code: number): boolean {
  if (code <= 11 || code === 92 || code === 93) return reader.skipMemoryOperand();
  if (code === 12 || code === 13) return reader.skip(16);
  if (code >= 21 && code <= 34) return reader.skip(1);
  if (code >= 84 && code <= 91) return reader.skipMemoryOperand() && reader.skip(1);
  return code <= 0x113;
}

export { Refused };
