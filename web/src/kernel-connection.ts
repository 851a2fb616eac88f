// The connection to a kernel in a worker of this page or process.
//
// Owns the worker and the requests that wait for an answer. Rules: every request settles once; if
// the worker fails or is ended, all that wait are rejected.

import type { Answer, Connection, Listener } from "./connection.js";
import { errorOf, HostError, SandboxClosedError, SandboxCrashedError } from "./errors.js";
import { Events } from "./events.js";
import type { Driver } from "./kernel/module-form.js";
import type { BootReport, FromKernel } from "./messages.js";
import { chooseDriver, startKernel, type KernelWorker } from "#platform/page";

interface Pending {
  resolve(answer: Answer<unknown>): void;
  reject(error: Error): void;
}

const NOTHING = new Uint8Array(0);

export class KernelConnection implements Connection {
  private readonly worker: KernelWorker;
  private readonly pending = new Map<number, Pending>();
  private readonly events = new Events((handle, bytes) => {
    if (!this.ended) this.worker.send({ kind: "taken", handle, bytes }, []);
  });
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
    assets: string, snapshot: boolean, wanted?: Driver,
  ): Promise<{ connection: KernelConnection; report: BootReport }> {
    const driver = chooseDriver(wanted);
    if (typeof driver !== "string") throw new HostError(driver.problem, "ENOSYS");
    const connection = new KernelConnection();
    const report = await new Promise<BootReport>((resolve, reject) => {
      connection.booted = { resolve, reject };
      connection.worker.send({ kind: "boot", assets, snapshot, driver }, []);
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

  listen(handle: number, listener: Listener): void {
    this.events.listen(handle, listener);
    this.holdIfNeeded();
  }

  unlisten(handle: number): void {
    this.events.unlisten(handle);
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
    this.events.lose();
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
        return this.events.deliver(
          message.handle, JSON.parse(message.event), message.data ?? NOTHING,
        );
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

  private holdIfNeeded(): void {
    this.worker.hold(this.pending.size > 0 || this.events.count > 0);
  }
}
