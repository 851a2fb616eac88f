// Unpacking gzip at once, for a worker that cannot wait for the browser's own stream.
//
// Owns `gunzip` (RFC 1951 and 1952). Rules: wrong input throws, and never more than the size that the
// end of the data names is made. The caller checks the hash of the result, so no checksum is.

const MAX_BITS = 15;
/** The order in which the lengths of the code for lengths are stored. */
const LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** The first value of each code, where each has as many bits as `bits` says. */
function bases(first: number, bits: number[]): number[] {
  let next = first;
  return bits.map((count) => {
    const base = next;
    next += 1 << count;
    return base;
  });
}
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const LENGTHS = [...bases(3, LENGTH_BITS.slice(0, 28)), 258];
const DISTANCE_BITS = Array.from({ length: 30 }, (_, code) => Math.max(0, (code >> 1) - 1));
const DISTANCES = bases(1, DISTANCE_BITS);

function damaged(): never {
  throw new Error("the packed data is damaged");
}

/** A prefix code: how many codes have each length, and the symbols in the order of their codes. */
class PrefixCode {
  readonly counts = new Uint16Array(MAX_BITS + 1);
  readonly symbols: Uint16Array;

  constructor(lengths: ArrayLike<number>) {
    this.symbols = new Uint16Array(lengths.length);
    for (let symbol = 0; symbol < lengths.length; symbol++) this.counts[lengths[symbol]!]!++;
    this.counts[0] = 0;
    const next = new Uint16Array(MAX_BITS + 2);
    for (let bits = 1; bits <= MAX_BITS; bits++) next[bits + 1] = next[bits]! + this.counts[bits]!;
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      const bits = lengths[symbol]!;
      if (bits) this.symbols[next[bits]!++] = symbol;
    }
  }
}

const fixedLengths = Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8));
const FIXED = [new PrefixCode(fixedLengths), new PrefixCode(new Uint8Array(30).fill(5))] as const;

class Inflater {
  private bitBuffer = 0;
  private bitCount = 0;
  private written = 0;

  constructor(
    private readonly input: Uint8Array, private at: number, private readonly out: Uint8Array,
  ) {}

  run(): Uint8Array {
    let isLast: number;
    do {
      isLast = this.bits(1);
      const kind = this.bits(2);
      if (kind === 0) this.stored();
      else if (kind === 1) this.coded(...FIXED);
      else if (kind === 2) this.coded(...this.dynamicCodes());
      else damaged();
    } while (!isLast);
    if (this.written !== this.out.length) damaged();
    return this.out;
  }

  private bits(count: number): number {
    while (this.bitCount < count) {
      if (this.at >= this.input.length) damaged();
      this.bitBuffer |= this.input[this.at++]! << this.bitCount;
      this.bitCount += 8;
    }
    const value = this.bitBuffer & ((1 << count) - 1);
    this.bitBuffer >>>= count;
    this.bitCount -= count;
    return value;
  }

  private symbol(code: PrefixCode): number {
    let value = 0, first = 0, index = 0;
    for (let length = 1; length <= MAX_BITS; length++) {
      value |= this.bits(1);
      const count = code.counts[length]!;
      if (value - count < first) return code.symbols[index + (value - first)]!;
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    return damaged();
  }

  private stored(): void {
    this.bitBuffer = this.bitCount = 0;
    const count = this.bits(16);
    if ((this.bits(16) ^ 0xffff) !== count) damaged();
    if (this.at + count > this.input.length || this.written + count > this.out.length) damaged();
    this.out.set(this.input.subarray(this.at, this.at + count), this.written);
    this.at += count;
    this.written += count;
  }

  private dynamicCodes(): [PrefixCode, PrefixCode] {
    const literals = this.bits(5) + 257, distances = this.bits(5) + 1, known = this.bits(4) + 4;
    const ofLengths = new Uint8Array(19);
    for (let n = 0; n < known; n++) ofLengths[LENGTH_ORDER[n]!] = this.bits(3);
    const code = new PrefixCode(ofLengths);
    const lengths = new Uint8Array(literals + distances);
    for (let n = 0; n < lengths.length; ) {
      const symbol = this.symbol(code);
      if (symbol < 16) {
        lengths[n++] = symbol;
        continue;
      }
      const repeated = symbol === 16 ? (n ? lengths[n - 1]! : damaged()) : 0;
      const bits = symbol === 16 ? 2 : symbol === 17 ? 3 : 7;
      const count = this.bits(bits) + (symbol === 18 ? 11 : 3);
      if (n + count > lengths.length) damaged();
      lengths.fill(repeated, n, n + count);
      n += count;
    }
    return [new PrefixCode(lengths.subarray(0, literals)), new PrefixCode(lengths.subarray(literals))];
  }

  private coded(literals: PrefixCode, distances: PrefixCode): void {
    const out = this.out;
    for (;;) {
      const symbol = this.symbol(literals);
      if (symbol === 256) return;
      if (symbol < 256) {
        if (this.written >= out.length) damaged();
        out[this.written++] = symbol;
        continue;
      }
      const length = LENGTHS[symbol - 257]! + this.bits(LENGTH_BITS[symbol - 257] ?? damaged());
      const far = this.symbol(distances);
      const distance = DISTANCES[far]! + this.bits(DISTANCE_BITS[far] ?? damaged());
      if (distance > this.written || this.written + length > out.length) damaged();
      for (let left = length; left; left--, this.written++) {
        out[this.written] = out[this.written - distance]!;
      }
    }
  }
}

/** Unpack a gzip file without optional fields, as make-assets.mjs writes them. */
export function gunzip(packed: Uint8Array): Uint8Array {
  const head = [0x1f, 0x8b, 8, 0];
  if (packed.length < 18 || head.some((byte, index) => packed[index] !== byte)) damaged();
  const end = packed.length - 8;
  const size = new DataView(packed.buffer, packed.byteOffset + end).getUint32(4, true);
  // Deflate packs at most 1032 to 1.
  if (size > packed.length * 1032) damaged();
  return new Inflater(packed.subarray(0, end), 10, new Uint8Array(size)).run();
}
