// Results of commands.
//
// Owns making one of the service's answer. Rules: standard output and standard error come as one
// array of bytes, in this order.

import { bytesOf, concatenated, textOf } from "./bytes.js";
import type { Answer } from "./connection.js";
import type { RunResult } from "./types.js";

function withNotice(stderr: Uint8Array): Uint8Array {
  const inLine = stderr.length > 0 && stderr.at(-1) !== 10;
  return concatenated([stderr, bytesOf(`${inLine ? "\n" : ""}command timed out\n`)]);
}

export interface RunAnswer {
  exitCode: number;
  executionTimeMs: number;
  timedOut: boolean;
  truncated: boolean;
  /** How many bytes of the data are standard output. */
  stdoutBytes: number;
}

export function runResult({ result, data }: Answer<RunAnswer>): RunResult {
  const count = result.stdoutBytes;
  return completed(result, data.subarray(0, count), data.subarray(count));
}

export function completed(
  ended: Omit<RunAnswer, "stdoutBytes">, stdoutBytes: Uint8Array, stderrOfCommand: Uint8Array,
): RunResult {
  const { exitCode, executionTimeMs, timedOut, truncated } = ended;
  const stderrBytes = timedOut ? withNotice(stderrOfCommand) : stderrOfCommand;
  return {
    exitCode, stdout: textOf(stdoutBytes), stderr: textOf(stderrBytes), executionTimeMs, timedOut,
    truncated, stdoutBytes, stderrBytes,
  };
}
