// `run` with a signal or with listeners: the output comes while the command runs.
//
// Owns `streamedRun`. Rules: the result, the time limit and the limit of output are those of a run
// without listeners. Text is decoded as a stream, so that a character in two pieces arrives whole.

import { concatenated } from "./bytes.js";
import { StartedCommand } from "./commands.js";
import type { Connection } from "./connection.js";
import { completed } from "./results.js";
import type { RunOptions, RunResult, SandboxOptions } from "./types.js";

/** What holds for commands that have no limits of their own. */
export interface RunLimits {
  timeoutMs: number | null;
  outputBytes: number;
}

const TIMEOUT_MS = 30_000;
const OUTPUT_BYTES = 64 * 1024 * 1024;

export function runLimits(options: SandboxOptions): RunLimits {
  const { timeoutMs = TIMEOUT_MS, maxOutputBytes = OUTPUT_BYTES } = options;
  return { timeoutMs, outputBytes: maxOutputBytes };
}

class Output {
  private readonly pieces: Uint8Array[] = [];
  private readonly decoder = new TextDecoder();
  size = 0;

  constructor(private readonly listener: ((text: string) => void) | undefined) {}

  add(bytes: Uint8Array): void {
    this.pieces.push(bytes);
    this.size += bytes.length;
    const text = this.listener ? this.decoder.decode(bytes, { stream: true }) : "";
    if (text) this.listener?.(text);
  }

  end(): Uint8Array {
    const rest = this.listener ? this.decoder.decode() : "";
    if (rest) this.listener?.(rest);
    return concatenated(this.pieces);
  }
}

export async function streamedRun(
  connection: Connection, command: string, options: RunOptions, limits: RunLimits,
): Promise<RunResult> {
  const { onStdout, onStderr, signal, ...others } = options;
  const stdout = new Output(onStdout);
  const stderr = new Output(onStderr);
  let started: StartedCommand | undefined;
  let truncated = false;
  const keep = (output: Output, bytes: Uint8Array) => {
    const room = limits.outputBytes - stdout.size - stderr.size;
    if (bytes.length > room) {
      truncated = true;
      void started?.kill().catch(() => {});
    }
    if (room > 0) output.add(bytes.subarray(0, room));
  };
  started = await StartedCommand.start(connection, command, {
    timeoutMs: limits.timeoutMs,
    ...others,
    signal,
    onStdout: (bytes) => keep(stdout, bytes),
    onStderr: (bytes) => keep(stderr, bytes),
  });
  if (truncated) await started.kill();
  const ended = await started.ended;
  if (signal?.aborted) throw signal.reason;
  return completed({ ...ended, truncated }, stdout.end(), stderr.end());
}
