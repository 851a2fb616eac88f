// Text and bytes.
//
// Owns the conversion of what callers pass and get. Rules: text is UTF-8; invalid bytes of programs
// become U+FFFD.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function bytesOf(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? encoder.encode(content) : content;
}

export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

export function concatenated(pieces: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
