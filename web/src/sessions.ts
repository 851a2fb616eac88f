// Sessions: a bash or a Python that keeps its state from one run to the next.
//
// Owns `ShellSession` and `PythonSession`. Rules: runs of one session happen one after the other, in
// the order of the calls.

import type { Connection } from "./connection.js";
import type { PythonResult, ShellResult } from "./types.js";

export interface SessionOptions {
  env?: Record<string, string>;
  cwd?: string;
}

/** One bash. Directory, variables and functions stay. */
export class ShellSession {
  private constructor(private readonly connection: Connection, private readonly shell: number) {}

  static async open(connection: Connection, options: SessionOptions): Promise<ShellSession> {
    const { result } = await connection.request<{ shell: number }>("shell.open", options);
    return new ShellSession(connection, result.shell);
  }

  async run(
    command: string, options: { timeoutMs?: number | null } = {},
  ): Promise<ShellResult> {
    const { result } = await this.connection.request<ShellResult>("shell.run", {
      shell: this.shell, command, ...options,
    });
    return result;
  }

  /** Interrupt what runs, as Ctrl+C does. */
  async interrupt(): Promise<void> {
    await this.connection.request("shell.interrupt", { shell: this.shell });
  }

  async close(): Promise<void> {
    await this.connection.request("shell.close", { shell: this.shell });
  }
}

/** One Python. Variables, functions and modules stay. */
export class PythonSession {
  private constructor(private readonly connection: Connection, private readonly python: number) {}

  static async open(connection: Connection, options: SessionOptions): Promise<PythonSession> {
    const { result } = await connection.request<{ python: number }>("python.open", options);
    return new PythonSession(connection, result.python);
  }

  async run(
    code: string, options: { timeoutMs?: number | null } = {},
  ): Promise<PythonResult> {
    const { result } = await this.connection.request<PythonResult>("python.run", {
      python: this.python, code, ...options,
    });
    return result;
  }

  /** Interrupt what runs: it gets a KeyboardInterrupt. */
  async interrupt(): Promise<void> {
    await this.connection.request("python.interrupt", { python: this.python });
  }

  async close(): Promise<void> {
    await this.connection.request("python.close", { python: this.python });
  }
}
