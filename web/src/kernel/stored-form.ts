// Programs in the form in which they run, as assets.
//
// Owns the format: a length, a JSON head of that length, the module, the data segments. Rules: the
// assets are made by scripts/make-assets.mjs and checked by their hash, so this trusts them.

import type { Form } from "./module-form.js";

interface Head {
  form: Omit<Form, "bytes" | "segments">;
  moduleBytes: number;
  segments: [address: number, bytes: number][];
}

const LENGTH_BYTES = 4;

export function storeForm({ bytes, segments, ...form }: Form): Uint8Array {
  const head: Head = {
    form,
    moduleBytes: bytes.length,
    segments: segments.map((segment) => [segment.address, segment.bytes.length]),
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  const pieces = [text, bytes, ...segments.map((segment) => segment.bytes)];
  const size = pieces.reduce((sum, piece) => sum + piece.length, LENGTH_BYTES);
  const stored = new Uint8Array(size);
  new DataView(stored.buffer).setUint32(0, text.length, true);
  let at = LENGTH_BYTES;
  for (const piece of pieces) {
    stored.set(piece, at);
    at += piece.length;
  }
  return stored;
}

export function readForm(stored: Uint8Array): Form {
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
  let at = LENGTH_BYTES;
  const take = (count: number) => stored.subarray(at, (at += count));
  const head = JSON.parse(new TextDecoder().decode(take(view.getUint32(0, true)))) as Head;
  const bytes = take(head.moduleBytes);
  const segments = head.segments.map(([address, count]) => ({ address, bytes: take(count) }));
  return { ...head.form, bytes, segments };
}
