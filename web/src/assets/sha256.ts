// SHA-256 at once, for a worker that cannot wait for the browser's own.
//
// Owns `sha256` (FIPS 180-4).

/** The first 32 bits of the fractional part of a root of the first primes. */
function constants(count: number, root: number): Int32Array {
  const found: number[] = [];
  for (let candidate = 2; found.length < count; candidate++) {
    let divisor = 2;
    while (divisor * divisor <= candidate && candidate % divisor) divisor++;
    if (divisor * divisor <= candidate) continue;
    const value = candidate ** (1 / root);
    found.push(((value - Math.floor(value)) * 2 ** 32) | 0);
  }
  return Int32Array.from(found);
}

const ROUNDS = constants(64, 3);
const FIRST = constants(8, 2);

function turn(value: number, bits: number): number {
  return (value >>> bits) | (value << (32 - bits));
}

/** The hash as 64 hexadecimal digits. */
export function sha256(content: Uint8Array): string {
  const state = FIRST.slice();
  const words = new Int32Array(64);
  const whole = content.length & ~63;
  const tail = new Uint8Array(content.length - whole < 56 ? 64 : 128);
  tail.set(content.subarray(whole));
  tail[content.length - whole] = 0x80;
  const end = new DataView(tail.buffer);
  end.setUint32(tail.length - 8, Math.floor(content.length / 2 ** 29));
  end.setUint32(tail.length - 4, (content.length * 8) >>> 0);
  for (let at = 0; at < whole; at += 64) mix(state, words, content, at);
  for (let at = 0; at < tail.length; at += 64) mix(state, words, tail, at);
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function mix(state: Int32Array, words: Int32Array, bytes: Uint8Array, at: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 64);
  for (let n = 0; n < 16; n++) words[n] = view.getInt32(4 * n);
  for (let n = 16; n < 64; n++) {
    const far = words[n - 15]!, near = words[n - 2]!;
    const small = turn(far, 7) ^ turn(far, 18) ^ (far >>> 3);
    const large = turn(near, 17) ^ turn(near, 19) ^ (near >>> 10);
    words[n] = words[n - 16]! + small + words[n - 7]! + large;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as number[] as
    [number, number, number, number, number, number, number, number];
  for (let n = 0; n < 64; n++) {
    const choice = (e & f) ^ (~e & g);
    const one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + ROUNDS[n]! + words[n]!;
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => (state[index]! += word));
}
