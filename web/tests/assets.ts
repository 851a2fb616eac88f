// Unpacking and hashing without waiting.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { constants, gzipSync } from "node:zlib";
import { gunzip } from "../src/assets/inflate.js";
import { sha256 } from "../src/assets/sha256.js";

/** Contents of many kinds: empty, random, repeated, text. */
function contents(): Uint8Array[] {
  const sizes = [0, 1, 55, 56, 63, 64, 65, 1000, 70_000, 300_000];
  const text = "the quick brown fox jumps over the lazy dog ".repeat(4000);
  return [
    ...sizes.map((size) => new Uint8Array(randomBytes(size))),
    ...sizes.map((size) => new Uint8Array(size)),
    new TextEncoder().encode(text.split("").map((c, n) => (n % 97 ? c : String(n))).join("")),
  ];
}

test("assets are unpacked and hashed without waiting, as Node does it", () => {
  for (const content of contents()) {
    assert.equal(sha256(content), createHash("sha256").update(content).digest("hex"));
    for (const strategy of [constants.Z_DEFAULT_STRATEGY, constants.Z_FIXED]) {
      for (const level of [0, 1, 9]) {
        const unpacked = gunzip(new Uint8Array(gzipSync(content, { level, strategy })));
        assert.ok(Buffer.from(unpacked).equals(content), `${content.length} bytes, ${level}`);
      }
    }
  }
});

test("damaged packed data is refused, or has another hash, and nothing else happens", () => {
  const content = contents().at(-1)!;
  const packed = new Uint8Array(gzipSync(content));
  const expected = sha256(content);
  let refused = 0;
  for (let round = 0; round < 300; round++) {
    const damaged = packed.slice(0, round % 3 ? packed.length : round * 7);
    if (damaged.length) damaged[(round * 7919) % Math.min(damaged.length, 4000)]! ^= 1 + (round % 255);
    try {
      const found = sha256(gunzip(damaged));
      // The time in the header, the name of the system and the checksum are not looked at.
      const ignored = (round * 7919) % Math.min(damaged.length, 4000) < 10;
      assert.ok(found !== expected || ignored);
    } catch (error) {
      assert.match((error as Error).message, /damaged/);
      refused++;
    }
  }
  assert.ok(refused > 100);
});
