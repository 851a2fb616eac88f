// The connection of a page's thread to the worker of a kernel.
//
// Owns the worker, requests that wait for an answer, and who listens to events. Rules: every request
// settles once; if the worker fails or is ended, all that wait are rejected.

import { errorOf, HostError, SandboxClosedError, SandboxCrashedError } from "./errors.js";
import type { BootReport, FromKernel } from "./messages.js";
import { missingRequirement, startKernel, type KernelWorker } from "#platform/page";

/** The answer to a request. */
export interface Answer<Result> {
  result: Result;
  data: Uint8Array;
}

/** An event of a started command, a terminal or a session. */
export interface KernelEvent {
  event: string;
  [field: string]: unknown;
}

type Listener = (event: KernelEvent, data: Uint8Array) => void;

interface Pending {
  resolve(answer: Answer<unknown>): void;
  reject(error: Error): void;
}

const NOTHING = new Uint8Array(0);
/** Events that may come before their listener is known, because they follow the answer at once. */
const EARLY_MOST = 10_000;

export class Connection {
  private readonly worker: KernelWorker;
  private readonly pending = new Map<number, Pending>();
  private readonly listeners = new Map<number, Listener>();
  private early: [number, KernelEvent, Uint8Array][] = [];
  private counter = 0;
  private ended: SandboxClosedError | null = null;
  private booted!: { resolve(report: BootReport): void; reject(error: Error): void };

  private constructor() {
    this.worker = startKernel(
      (message) => this.receive(message),
      (message) => this.end(new SandboxCrashedError(`the sandbox has failed: ${message}`)),
    );
  }

  /** Start a kernel. */
  static async open(
    assets: string, snapshot: boolean,
  ): Promise<{ connection: Connection; report: BootReport }> {
    const problem = missingRequirement();
    if (problem) throw new HostError(problem, "ENOSYS");
    const connection = new Connection();
    const report = await new Promise<BootReport>((resolve, reject) => {
      connection.booted = { resolve, reject };
      connection.worker.send({ kind: "boot", assets, snapshot }, []);
    });
    connection.worker.hold(false);
    return { connection, report };
  }

  /** Ask the service in Python. */
  request<Result>(
    method: string, params: object = {}, data: Uint8Array | null = null,
  ): Promise<Answer<Result>> {
    if (this.ended) return Promise.reject(this.ended);
    const number = ++this.counter;
    return new Promise<Answer<Result>>((resolve, reject) => {
      this.pending.set(number, { resolve: resolve as Pending["resolve"], reject });
      this.worker.hold(true);
      this.worker.send({ kind: "request", number, method, params: JSON.stringify(params), data }, []);
    });
  }

  /** Get the events of a handle, also those that have come already. */
  listen(handle: number, listener: Listener): void {
    this.listeners.set(handle, listener);
    const missed = this.early.filter(([of]) => of === handle);
    this.early = this.early.filter(([of]) => of !== handle);
    for (const [, event, data] of missed) this.deliver(listener, handle, event, data);
    this.holdIfNeeded();
  }

  unlisten(handle: number): void {
    this.listeners.delete(handle);
    this.holdIfNeeded();
  }

  /** End the worker. Everything that waits is rejected. */
  close(): void {
    this.end(new SandboxClosedError("the sandbox was destroyed", "EBADF"));
  }

  get isClosed(): boolean {
    return this.ended !== null;
  }

  private end(error: SandboxClosedError): void {
    if (this.ended) return;
    this.ended = error;
    this.worker.terminate();
    this.booted.reject(error);
    for (const waiting of this.pending.values()) waiting.reject(error);
    this.pending.clear();
    const listeners = [...this.listeners.values()];
    this.listeners.clear();
    for (const listener of listeners) listener({ event: "lost" }, NOTHING);
  }

  private receive(message: FromKernel): void {
    switch (message.kind) {
      case "booted":
        return this.booted.resolve(message.report);
      case "bootFailed":
        this.booted.reject(errorOf(message.failure));
        return this.close();
      case "broken":
        return this.end(new SandboxCrashedError(`the sandbox has failed: ${message.message}`));
      case "event":
        return this.event(message.handle, JSON.parse(message.event), message.data ?? NOTHING);
      default: {
        const waiting = this.pending.get(message.number);
        this.pending.delete(message.number);
        this.holdIfNeeded();
        if (message.kind === "failed") waiting?.reject(errorOf(message.failure));
        else {
          waiting?.resolve({ result: JSON.parse(message.result), data: message.data ?? NOTHING });
        }
      }
    }
  }

  private event(handle: number, event: KernelEvent, data: Uint8Array): void {
    const listener = this.listeners.get(handle);
    if (listener) this.deliver(listener, handle, event, data);
    else if (this.early.length < EARLY_MOST) this.early.push([handle, event, data]);
  }

  private deliver(
    listener: Listener, handle: number, event: KernelEvent, data: Uint8Array,
  ): void {
    const bytes = data.length; // the listener may transfer the data elsewhere
    try {
      listener(event, data);
    } finally {
      if (bytes && !this.ended) this.worker.send({ kind: "taken", handle, bytes }, []);
    }
  }

  private holdIfNeeded(): void {
    this.worker.hold(this.pending.size > 0 || this.listeners.size > 0);
  }
}
