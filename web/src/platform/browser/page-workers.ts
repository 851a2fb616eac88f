// The workers of a kernel beside its own: one for assets, and those for guests.
//
// Owns starting and ending them on the page's side, and the messages by which the kernel's worker asks
// for it. The page starts them, because Firefox does not always start a worker of a worker: the
// constructor may never return (seen in 153). Rules: a worker is known by a number; it talks with the
// kernel's worker by a port, which is its first message.

export type WorkerKind = "assets" | "guest";

export interface StartWorker {
  kind: "startWorker";
  number: number;
  what: WorkerKind;
  port: MessagePort;
}

export interface EndWorker {
  kind: "endWorker";
  number: number;
}

/** The first message to a worker. */
interface Hello {
  port: MessagePort;
}

const SCRIPTS: Record<WorkerKind, string> = {
  assets: "asset-worker.js", guest: "guest-worker.js",
};

/** The workers of one kernel, on the page's side. */
export class PageWorkers {
  private readonly workers = new Map<number, Worker>();

  /** `broken` learns that a script could not be loaded. */
  constructor(
    private readonly make: Record<WorkerKind, () => Worker>,
    private readonly broken: (message: string) => void,
  ) {}

  /** Whether the message was for this. */
  receive(message: { kind: string } | StartWorker | EndWorker): boolean {
    if (message.kind === "startWorker") this.start(message as StartWorker);
    else if (message.kind === "endWorker") this.end((message as EndWorker).number);
    else return false;
    return true;
  }

  private start({ number, what, port }: StartWorker): void {
    const worker = this.make[what]();
    worker.onerror = (event) => {
      if (!event.message) this.broken(`the script ${SCRIPTS[what]} could not be loaded`);
    };
    this.workers.set(number, worker);
    worker.postMessage({ port } satisfies Hello, [port]);
  }

  private end(number: number): void {
    this.workers.get(number)?.terminate();
    this.workers.delete(number);
  }

  endAll(): void {
    for (const number of [...this.workers.keys()]) this.end(number);
  }
}

// In the kernel's worker.

let counter = 0;

/** Ask the page for a worker: the port to it, and how to end it. */
export function askForWorker(what: WorkerKind): { port: MessagePort; end(): void } {
  const number = ++counter;
  const { port1, port2 } = new MessageChannel();
  const tell = (message: StartWorker | EndWorker, transfer: Transferable[]) =>
    (self as unknown as Worker).postMessage(message, transfer);
  tell({ kind: "startWorker", number, what, port: port2 }, [port2]);
  return {
    port: port1,
    end: () => {
      tell({ kind: "endWorker", number }, []);
      port1.close();
    },
  };
}

// In such a worker.

/** Calls `act` with the port to the kernel's worker. */
export function onPort(act: (port: MessagePort) => void): void {
  self.onmessage = (event: MessageEvent<Hello>) => act(event.data.port);
}
