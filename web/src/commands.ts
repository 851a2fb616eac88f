// Commands and terminals that run while the caller does other things.
//
// Owns `StartedCommand` and `Terminal`. Rules: `ended` settles once, and rejects only if the sandbox
// is lost. Listeners get bytes in the order in which the program wrote them.

import { bytesOf } from "./bytes.js";
import type { Connection, KernelEvent } from "./connection.js";
import { SandboxClosedError } from "./errors.js";
import type { Ending, PtyOptions, StartOptions } from "./types.js";

abstract class Running {
  /** How it ended. */
  readonly ended: Promise<Ending>;
  private settle!: { resolve(ending: Ending): void; reject(error: Error): void };

  constructor(
    protected readonly connection: Connection, readonly handle: number, readonly pid: number,
  ) {
    this.ended = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
    this.ended.catch(() => {}); // whoever waits for it gets the error
  }

  /** Listen to events. The subclass calls it when it is ready for them. */
  protected begin(): void {
    this.connection.listen(this.handle, (event, data) => {
      if (event.event === "ended") {
        this.connection.unlisten(this.handle);
        const { exitCode, timedOut, executionTimeMs } = event as KernelEvent & Ending;
        this.settle.resolve({ exitCode, timedOut, executionTimeMs });
      } else if (event.event === "lost") {
        this.settle.reject(new SandboxClosedError("the sandbox has ended", "EBADF"));
      } else this.received(event, data);
    });
  }

  protected abstract received(event: KernelEvent, data: Uint8Array): void;
}

export class StartedCommand extends Running {
  private constructor(
    connection: Connection, handle: number, pid: number, private readonly options: StartOptions,
  ) {
    super(connection, handle, pid);
    this.begin();
  }

  static async start(
    connection: Connection, command: string | string[], options: StartOptions,
  ): Promise<StartedCommand> {
    const { stdin, signal, onStdout, onStderr, ...params } = options;
    signal?.throwIfAborted();
    const data = stdin === undefined || stdin === true ? null : bytesOf(stdin);
    const answer = await connection.request<{ handle: number; pid: number }>(
      "start", { command, stdin: stdin === true, ...params }, data,
    );
    const { handle, pid } = answer.result;
    const started = new StartedCommand(connection, handle, pid, options);
    const abort = () => void started.kill().catch(() => {});
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    const forget = () => signal?.removeEventListener("abort", abort);
    started.ended.then(forget, forget);
    return started;
  }

  protected received(event: KernelEvent, data: Uint8Array): void {
    (event.fd === 2 ? this.options.onStderr : this.options.onStdout)?.(data);
  }

  /** Write to its standard input. */
  async write(content: string | Uint8Array): Promise<void> {
    await this.connection.request("start.write", { handle: this.handle }, bytesOf(content));
  }

  async closeStdin(): Promise<void> {
    await this.connection.request("start.closeStdin", { handle: this.handle });
  }

  /** End all its processes. */
  async kill(): Promise<void> {
    await this.connection.request("start.kill", { handle: this.handle });
  }
}

/** A program on a terminal. */
export class Terminal extends Running {
  private constructor(
    connection: Connection, handle: number, pid: number,
    private readonly onData: (bytes: Uint8Array) => void,
  ) {
    super(connection, handle, pid);
    this.begin();
  }

  static async open(connection: Connection, options: PtyOptions): Promise<Terminal> {
    const { onData, ...params } = options;
    const answer = await connection.request<{ handle: number; pid: number }>(
      "pty.open", { cols: 80, rows: 24, ...params },
    );
    return new Terminal(connection, answer.result.handle, answer.result.pid, onData ?? (() => {}));
  }

  protected received(_event: KernelEvent, data: Uint8Array): void {
    this.onData(data);
  }

  /** Type. */
  async write(content: string | Uint8Array): Promise<void> {
    await this.connection.request("pty.write", { handle: this.handle }, bytesOf(content));
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.connection.request("pty.resize", { handle: this.handle, cols, rows });
  }

  /** Hang up. */
  async close(): Promise<void> {
    await this.connection.request("pty.close", { handle: this.handle });
  }
}
