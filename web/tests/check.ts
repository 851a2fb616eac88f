// Checks that work in a page and in Node alike.
//
// Owns what the cases call. Rules: a failed check throws, and says what was found.

export interface Case {
  name: string;
  /** Default: 120,000. */
  timeoutMs?: number;
  run(world: World): Promise<void>;
}

import type * as api from "../src/index.js";
import type { OutsidePlace } from "./outside-server.js";

/** What a case gets. */
export interface World {
  api: typeof api;
  /** One sandbox for many cases: a case uses a directory of its own in it. */
  shared: api.Sandbox;
  /** Where a store of states may be. */
  storePlace: string;
  /** Servers that programs may reach. */
  outside: OutsidePlace;
  /** A sandbox of its own, which ends with the case. */
  create(options?: api.SandboxOptions): Promise<api.Sandbox>;
}

export function equal(found: unknown, expected: unknown, what = "value"): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: found ${a}, expected ${b}`);
}

export function check(condition: unknown, what: string): void {
  if (!condition) throw new Error(`not so: ${what}`);
}

/** The error with which a promise is rejected. */
export async function rejection<Kind extends Error>(
  promise: Promise<unknown>, kind: abstract new (...values: never[]) => Kind,
): Promise<Kind> {
  let result: unknown;
  try {
    result = await promise;
  } catch (error) {
    if (error instanceof kind) return error;
    throw new Error(`rejected with ${String(error)}, expected ${kind.name}`);
  }
  throw new Error(`resolved with ${JSON.stringify(result)}, expected ${kind.name}`);
}

/** Run a command that has to succeed: its output. */
export async function output(sandbox: api.Sandbox, command: string): Promise<string> {
  const result = await sandbox.run(command);
  if (result.exitCode !== 0) {
    throw new Error(`${command}: exit code ${result.exitCode}: ${result.stdout}${result.stderr}`);
  }
  return result.stdout;
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
