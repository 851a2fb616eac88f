// Reading and writing WebAssembly's binary format.
//
// Owns `Reader`, `Output` and the encoding of numbers. Rules: the bytes may come from a hostile guest, so
// every read is checked.

/** The bytes are not a module that can run here; the message says why. */
export class Refused extends Error {}

const PAGES_MAX = 65536;
const text = new TextDecoder("utf-8", { fatal: true });

/** Reads the parts of a module. Every method throws `Refused` at the end of the bytes. */
export class Reader {
  constructor(readonly bytes: Uint8Array, public at = 0, readonly end = bytes.length) {}

  byte(): number {
    if (this.at >= this.end) throw new Refused("ends in the middle of a section");
    return this.bytes[this.at++]!;
  }

  u32(): number {
    let result = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      result += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (result > 0xffffffff) break;
        return result;
      }
    }
    throw new Refused("has a number that is too large");
  }

  i32(): number {
    let result = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      result |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        if (shift < 28 && byte & 0x40) result |= -1 << (shift + 7);
        return result | 0;
      }
    }
    throw new Refused("has a number that is too large");
  }

  take(count: number): Uint8Array {
    if (count > this.end - this.at) throw new Refused("ends in the middle of a section");
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  name(): string {
    const bytes = this.take(this.u32());
    try {
      return text.decode(bytes);
    } catch {
      throw new Refused("has a name that is not UTF-8");
    }
  }

  limits(): { flags: number; first: number; most: number } {
    const flags = this.byte();
    if (flags > 3) throw new Refused("has a memory of 64-bit addresses");
    const first = this.u32();
    const most = flags & 1 ? this.u32() : PAGES_MAX;
    return { flags, first, most };
  }

  /** The value of a constant expression; null if it is not a single i32.const. */
  constant(): number | null {
    if (this.byte() !== 0x41) return null;
    const value = this.i32();
    return this.byte() === 0x0b ? value : null;
  }

  /** Skip a constant expression of any type. */
  skipConstant(): void {
    for (;;) {
      const code = this.byte();
      if (code === 0x0b) return;
      else if (code === 0x41 || code === 0x42) this.skipLeb();
      else if (code === 0x43) this.take(4);
      else if (code === 0x44) this.take(8);
      else if (code === 0x23 || code === 0xd0 || code === 0xd2) this.u32();
      else if (code === 0xfd) {
        if (this.u32() !== 12) throw new Refused("has an initial value that is not constant");
        this.take(16);
      } else if (![0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e].includes(code)) {
        throw new Refused("has an initial value that is not constant");
      }
    }
  }

  // These return true, so that they can be joined.

  skip(count: number): true {
    this.take(count);
    return true;
  }

  skipLeb(): true {
    while (this.byte() >= 0x80);
    return true;
  }

  /** Skip the type of a value; the type of a reference may have a second part. */
  skipType(): true {
    const type = this.byte();
    return type === 0x63 || type === 0x64 ? this.skipLeb() : true;
  }

  skipBlockType(): true {
    const type = this.byte();
    if (type === 0x63 || type === 0x64) return this.skipLeb();
    return type < 0x80 ? true : this.skipLeb();
  }

  skipMemoryOperand(): true {
    const flags = this.u32();
    if (flags & 0x40) this.skipLeb();
    return this.skipLeb();
  }

  globalType(): { type: number; mutable: boolean } {
    const type = this.byte();
    if (type === 0x63 || type === 0x64) this.u32();
    return { type, mutable: this.byte() === 1 };
  }
}

export function leb(value: number): number[] {
  const bytes = [];
  do {
    const rest = Math.floor(value / 128);
    bytes.push((value & 0x7f) | (rest ? 0x80 : 0));
    value = rest;
  } while (value);
  return bytes;
}

export function signedLeb(value: number): number[] {
  const bytes = [];
  for (;;) {
    const byte = value & 0x7f;
    value >>= 7;
    if ((value === 0 && !(byte & 0x40)) || (value === -1 && byte & 0x40)) return [...bytes, byte];
    bytes.push(byte | 0x80);
  }
}

/** Bytes that grow. */
export class Output {
  length = 0;
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
