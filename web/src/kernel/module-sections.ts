// The sections of a module.
//
// Owns `Sections`: taking a module apart, changing sections, and putting it together. Rules: custom
// sections are left out. Entries are added at the end of a section, so that no index changes.

import { leb, Reader, Refused } from "./wasm-reader.js";

export const CUSTOM = 0, TYPE = 1, IMPORT = 2, FUNCTION = 3, TABLE = 4, MEMORY = 5, GLOBAL = 6,
  EXPORT = 7, START = 8, CODE = 10, DATA = 11, TAG = 13;
const ELEMENT = 9, DATA_COUNT = 12;
/** In which order sections follow each other. */
const ORDER = [
  TYPE, IMPORT, FUNCTION, TABLE, MEMORY, TAG, GLOBAL, EXPORT, START, ELEMENT, DATA_COUNT, CODE, DATA,
];
const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

type Bytes = Uint8Array | number[];

export function named(name: string): number[] {
  const bytes = [...new TextEncoder().encode(name)];
  return [...leb(bytes.length), ...bytes];
}

export function concat(pieces: Bytes[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export class Sections {
  private readonly parts: { id: number; body: Uint8Array }[] = [];

  /** Throws `Refused`. */
  constructor(bytes: Uint8Array) {
    if (HEADER.some((byte, index) => bytes[index] !== byte)) {
      throw new Refused("is not a WebAssembly module");
    }
    const reader = new Reader(bytes, HEADER.length);
    while (reader.at < bytes.length) {
      const id = reader.byte();
      const body = reader.take(reader.u32());
      if (id !== CUSTOM) this.parts.push({ id, body });
    }
  }

  body(id: number): Uint8Array | undefined {
    return this.parts.find((part) => part.id === id)?.body;
  }

  remove(id: number): void {
    const index = this.parts.findIndex((part) => part.id === id);
    if (index >= 0) this.parts.splice(index, 1);
  }

  /** Replace a section, or put a new one to its place. */
  put(id: number, body: Bytes): void {
    const found = this.parts.find((part) => part.id === id);
    const bytes = body instanceof Uint8Array ? body : Uint8Array.from(body);
    if (found) {
      found.body = bytes;
      return;
    }
    const after = ORDER.slice(ORDER.indexOf(id) + 1);
    const index = this.parts.findIndex((part) => after.includes(part.id));
    this.parts.splice(index < 0 ? this.parts.length : index, 0, { id, body: bytes });
  }

  /** Add entries at the end of a section: the index of the first one in the section. */
  append(id: number, ...entries: Bytes[]): number {
    const body = this.body(id);
    const reader = new Reader(body ?? Uint8Array.of(0));
    const count = reader.u32();
    const before = reader.bytes.subarray(reader.at);
    this.put(id, concat([leb(count + entries.length), before, ...entries]));
    return count;
  }

  bytes(): Uint8Array {
    const pieces: Bytes[] = [HEADER];
    for (const { id, body } of this.parts) pieces.push([id, ...leb(body.length)], body);
    return concat(pieces);
  }
}
