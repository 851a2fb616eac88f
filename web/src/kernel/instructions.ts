// The instructions of WebAssembly, as far as loops, calls and work on whole ranges are concerned.
//
// Owns `scanFunction` and `skipInstruction`. Rules: the bytes may come from a hostile guest; the engine
// validates them afterwards. A function with an instruction that this does not know is not described at
// all.

import type { Reader } from "./wasm-reader.js";

const BLOCK = 0x02, LOOP = 0x03, IF = 0x04, TRY = 0x06, TRY_TABLE = 0x1f, BR_TABLE = 0x0e;
const END = 0x0b, DELEGATE = 0x18, MEMORY_GROW = 0x40, BULK = 0xfc;
const CALLS = new Set([0x10, 0x11, 0x12, 0x13, 0x14, 0x15]);

/** A function's body. Positions are those of the reader. */
export interface FunctionScan {
  /** The first instruction. */
  begin: number;
  /** How many local variables it has, beside its parameters. */
  locals: number;
  /** How many blocks it has, loops included. */
  blocks: number;
  /** Where the body of each loop begins, in ascending order, and how long it is. */
  loops: { at: number; size: number }[];
  hasCalls: boolean;
  /** Whether it handles exceptions in the form that is out of date. */
  hasLegacyTry: boolean;
  /** Instructions whose work depends on their operands: memory.grow, and those of the prefix 0xfc
   *  by their second number. */
  large: { at: number; end: number; code: number }[];
}

/** The code of memory.grow in `large`. */
export const GROW = -1;

/** Describe a function, whose local variables come next; null if an instruction is not known. */
export function scanFunction(reader: Reader, end: number): FunctionScan | null {
  let locals = 0;
  for (let left = reader.u32(); left; left--) {
    locals += reader.u32();
    reader.skipType();
  }
  const scan: FunctionScan = {
    begin: reader.at, locals, blocks: 0, loops: [], hasCalls: false, hasLegacyTry: false, large: [],
  };
  const open: ({ at: number; size: number } | null)[] = [];
  while (reader.at < end) {
    const at = reader.at;
    const code = reader.byte();
    if (code === LOOP) {
      scan.blocks++;
      reader.skipBlockType();
      const loop = { at: reader.at, size: 0 };
      scan.loops.push(loop);
      open.push(loop);
      continue;
    }
    if (code === BLOCK || code === IF || code === TRY || code === TRY_TABLE) {
      scan.blocks++;
      open.push(null);
    } else if (code === END || code === DELEGATE) {
      const closed = open.pop();
      if (closed) closed.size = at - closed.at;
    } else if (CALLS.has(code)) scan.hasCalls = true;
    if (code === TRY) scan.hasLegacyTry = true;
    if (code === BULK) {
      const bulk = reader.u32();
      if (!skipBulkOperands(reader, bulk)) return null;
      if (bulk > 7) scan.large.push({ at, end: reader.at, code: bulk });
    } else if (!skipOperands(reader, code)) return null;
    if (code === MEMORY_GROW) scan.large.push({ at, end: reader.at, code: GROW });
  }
  return reader.at === end ? scan : null;
}

/** Skip one instruction: its code, or null if it is not known. */
export function skipInstruction(reader: Reader): number | null {
  const code = reader.byte();
  const known = code === BULK ? skipBulkOperands(reader, reader.u32()) : skipOperands(reader, code);
  return known ? code : null;
}

function skipOperands(reader: Reader, code: number): boolean {
  if (code >= 0x45 && code <= 0xc4) return true;
  if (code >= 0x28 && code <= 0x3e) return reader.skipMemoryOperand();
  if (code >= 0x20 && code <= 0x26) return reader.skipLeb();
  switch (code) {
    case 0x00: case 0x01: case 0x05: case 0x0a: case 0x0b: case 0x0f: case 0x19: case 0x1a:
    case 0x1b: case 0xd1: case 0xd3: case 0xd4:
      return true;
    case BLOCK: case LOOP: case IF: case TRY:
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
