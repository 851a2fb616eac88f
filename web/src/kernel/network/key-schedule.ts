// The keys of a TLS 1.3 connection, and records that they protect (RFC 8446, sections 5 and 7).
//
// Owns deriving secrets, and `RecordKey`. Rules: SHA-256 and AES-128-GCM only.

import { joined, type Bytes } from "./der.js";

const encoder = new TextEncoder();
const HMAC = { name: "HMAC", hash: "SHA-256" };
export const HASH_BYTES = 32;
export const NO_SECRET = new Uint8Array(HASH_BYTES);

export async function hash(content: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", content));
}

export async function hmac(key: Bytes, content: Bytes): Promise<Bytes> {
  const imported = await crypto.subtle.importKey("raw", key, HMAC, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, content));
}

/** HKDF-Expand-Label, for at most 32 bytes. */
export async function expand(
  secret: Bytes, label: string, context: Uint8Array, length: number,
): Promise<Bytes> {
  const name = encoder.encode(`tls13 ${label}`);
  const info = joined(
    new Uint8Array([length >> 8, length & 0xff, name.length]), name,
    new Uint8Array([context.length]), context, new Uint8Array([1]),
  );
  return (await hmac(secret, info)).slice(0, length);
}

/** The secret of the next stage: HKDF-Extract after Derive-Secret(..., "derived", ""). */
export async function nextStage(secret: Bytes, input: Bytes): Promise<Bytes> {
  const salt = await expand(secret, "derived", await hash(new Uint8Array(0)), HASH_BYTES);
  return hmac(salt, input);
}

/** Protects or opens the records of one direction. */
export class RecordKey {
  private count = 0;

  private constructor(
    readonly secret: Bytes, private readonly key: CryptoKey, private readonly iv: Bytes,
  ) {}

  static async of(secret: Bytes): Promise<RecordKey> {
    const raw = await expand(secret, "key", new Uint8Array(0), 16);
    const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
    return new RecordKey(secret, key, await expand(secret, "iv", new Uint8Array(0), 12));
  }

  /** The key after a KeyUpdate. */
  async next(): Promise<RecordKey> {
    return RecordKey.of(await expand(this.secret, "traffic upd", new Uint8Array(0), HASH_BYTES));
  }

  private parameters(header: Bytes): AesGcmParams {
    const iv = this.iv.slice();
    const view = new DataView(iv.buffer);
    const number = BigInt(this.count++);
    view.setBigUint64(4, view.getBigUint64(4) ^ number);
    return { name: "AES-GCM", iv, additionalData: header, tagLength: 128 };
  }

  async protect(type: number, content: Uint8Array): Promise<Bytes> {
    const length = content.length + 1 + 16;
    const header = new Uint8Array([23, 3, 3, length >> 8, length & 0xff]);
    const inner = joined(content, new Uint8Array([type]));
    const sealed = await crypto.subtle.encrypt(this.parameters(header), this.key, inner);
    return joined(header, new Uint8Array(sealed));
  }

  /** Type and content of a record; rejects if it is not genuine. */
  async open(header: Bytes, sealed: Bytes): Promise<{ type: number; content: Bytes }> {
    const opened = await crypto.subtle.decrypt(this.parameters(header), this.key, sealed);
    const inner = new Uint8Array(opened);
    let end = inner.length;
    while (end > 0 && inner[end - 1] === 0) end--;
    if (end === 0) throw new Error("a record without a type");
    return { type: inner[end - 1]!, content: inner.slice(0, end - 1) };
  }
}
