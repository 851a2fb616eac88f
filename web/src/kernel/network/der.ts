// The encoding of certificates: DER, as far as an authority needs it.
//
// Owns the pieces from which certificates.ts builds certificates. Rules: pure functions of bytes.

export type Bytes = Uint8Array<ArrayBuffer>;

export function joined(...parts: Uint8Array[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A value with its tag and length. */
export function tagged(tag: number, ...content: Uint8Array[]): Bytes {
  const body = joined(...content);
  const length = body.length < 0x80
    ? [body.length]
    : body.length < 0x100
      ? [0x81, body.length]
      : [0x82, body.length >> 8, body.length & 0xff];
  return joined(new Uint8Array([tag, ...length]), body);
}

export const sequence = (...parts: Uint8Array[]) => tagged(0x30, ...parts);
export const set = (...parts: Uint8Array[]) => tagged(0x31, ...parts);
export const octets = (...parts: Uint8Array[]) => tagged(0x04, ...parts);
export const bits = (content: Uint8Array, unused = 0) =>
  tagged(0x03, new Uint8Array([unused]), content);
export const text = (value: string) => tagged(0x0c, new TextEncoder().encode(value));
export const TRUE = new Uint8Array([0x01, 0x01, 0xff]);

/** A positive number, most significant byte first. */
export function integer(bytes: Uint8Array): Bytes {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const plain = bytes.subarray(start);
  return tagged(0x02, plain[0]! >= 0x80 ? joined(new Uint8Array(1), plain) : plain);
}

/** The name of a thing, such as "2.5.29.17". */
export function objectId(name: string): Bytes {
  const [first, second, ...rest] = name.split(".").map(Number) as [number, number, ...number[]];
  const out = [first * 40 + second];
  for (const part of rest) {
    const groups = [part & 0x7f];
    for (let left = part >> 7; left; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    out.push(...groups);
  }
  return tagged(0x06, new Uint8Array(out));
}

/** A time such as "20991231235959Z"; years before 2050 have two digits. */
export function time(value: string): Bytes {
  const encode = (written: string) => new TextEncoder().encode(written);
  return value < "2050" ? tagged(0x17, encode(value.slice(2))) : tagged(0x18, encode(value));
}

/** A signature of WebCrypto (two numbers side by side) in the form of X.509 and TLS. */
export function ecdsaSignature(raw: ArrayBuffer): Bytes {
  const half = raw.byteLength / 2;
  return sequence(integer(new Uint8Array(raw, 0, half)), integer(new Uint8Array(raw, half)));
}
