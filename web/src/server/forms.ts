// Values of the HTTP protocol in the form of the JSON-RPC protocol, and the reverse.
//
// Owns the conversion. Rules: names are snake_case on the server and camelCase here; bytes that are
// not UTF-8 come as base64.

import { bytesOf, concatenated } from "../bytes.js";

export type Fields = Record<string, unknown>;

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000) {
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  }
  return btoa(pieces.join(""));
}

/** The bytes of a field that has the name `text`, or `base64`. */
export function bytesIn(fields: Fields, text: string, base64: string): Uint8Array {
  const encoded = fields[base64];
  if (typeof encoded === "string") return fromBase64(encoded);
  return bytesOf(String(fields[text] ?? ""));
}

/** The names of an object, not those inside its values. */
export function camelCase(fields: Fields): Fields {
  const named = Object.entries(fields).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value,
  ]);
  return Object.fromEntries(named) as Fields;
}

export function snakeCase(fields: Fields): Fields {
  const named = Object.entries(fields).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value,
  ]);
  return Object.fromEntries(named) as Fields;
}

export function fileInfo(file: Fields): Fields {
  const { mtime_ns, ...others } = file;
  return { ...others, mtimeNs: String(BigInt(mtime_ns as number)) };
}

export function processInfo(info: Fields): Fields {
  const { argv, ...others } = camelCase(info);
  return { ...others, command: argv };
}

export function pythonResult(result: Fields): Fields {
  const results = result["results"] as Fields[];
  return { ...camelCase(result), results: results.map(camelCase) };
}

/** How a command ended, and its output as bytes: standard output first. */
export function outcome(result: Fields): { result: Fields; data: Uint8Array } {
  const stdout = bytesIn(result, "stdout", "stdout_base64");
  const stderr = bytesIn(result, "stderr", "stderr_base64");
  const { exit_code, execution_time_ms, timed_out, truncated } = result;
  return {
    result: {
      exitCode: exit_code, executionTimeMs: execution_time_ms, timedOut: timed_out, truncated,
      stdoutBytes: stdout.length,
    },
    data: concatenated([stdout, stderr]),
  };
}
