// Which form of WebAssembly's exception handling the engine knows. Programs of the image use the final one.
//
// Owns the questions.

/** A module whose function catches an exception in the final form: `try_table` and `exnref`. */
const FINAL_EXCEPTIONS = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 15, 1, 13, 0, 0x02, 0x69,
  0x1f, 0x40, 1, 3, 0, 0x0b, 0x0f, 0x0b, 0x1a, 0x0b,
]);
/** One whose function catches an exception in the legacy form: `try` and `catch_all`. */
const LEGACY_EXCEPTIONS = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 0x06, 0x40, 0x19,
  0x0b, 0x0b,
]);

export function knowsFinalExceptions(): boolean {
  return WebAssembly.validate(FINAL_EXCEPTIONS);
}

export function knowsLegacyExceptions(): boolean {
  return WebAssembly.validate(LEGACY_EXCEPTIONS);
}
