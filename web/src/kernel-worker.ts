// The worker in which the kernel runs: Python in Pyodide, and this file between it and the guests.
//
// Owns Pyodide, the memories, modules and workers of guests, and the bell that guests ring. Rules:
// only numbers and strings pass between Python and JavaScript; bytes pass in one buffer.

import {
  ANSWERED, CALLING, CHANNEL_WORDS, Meaning, MEANING, OPERATION, Operation, RESULT, STATE, WORDS,
  type FunctionOffer, type Start,
} from "./channel.js";
import { MEMORY_MODULE, reshape, Refused, type Form } from "./module-form.js";
import { loadPython, readAsset, spawnGuest, type GuestWorker } from "#platform/kernel";

const BLOCKED = 2 ** 40;
const LEAVE = BLOCKED + 1;
const HANDLE = BLOCKED + 2;
const TICK_MS = 100;
const TRAP_KINDS = [
  "out of bounds memory access", "stack overflow", "bad indirect call",
  "integer division by zero or overflow", "unreachable", "uncaught WebAssembly exception", "trap",
];

interface Loaded {
  module: WebAssembly.Module;
  form: Form;
}

/** A worker for guests, and the channel on which they call. */
class Worker {
  private readonly memory = new SharedArrayBuffer(4 * CHANNEL_WORDS);
  readonly channel = new Int32Array(this.memory);
  private readonly worker: GuestWorker = spawnGuest();

  /** Run a program as soon as the last one has been left. */
  start(start: Omit<Start, "channel">): void {
    this.worker.start({ ...start, channel: this.memory });
  }

  terminate(): void {
    this.worker.terminate();
  }
}

interface Guest {
  worker: Worker;
  /** Whether Python owes it an answer. */
  waits: boolean;
  /** Whether it ends with its next answer. */
  ended: boolean;
}

function pairOf(line: string): [string, number] {
  const [name, value] = line.split("\t") as [string, string];
  return [name, Number(value)];
}

/** What Python offers (web/boot.py). */
interface Service {
  call(
    guest: number, nr: number, a: number, b: number, c: number, d: number, e: number, f: number,
  ): number;
  other(guest: number, what: string, ...values: unknown[]): number;
  module_fetched(key: string, form: unknown): void;
  memory_fetched(key: string, image: number): void;
  fetch_failed(key: string, problem: string): void;
  time_passed(): void;
  tick(): void;
  request(number: number, method: string, params: string, data?: Uint8Array): void;
}

/** A copy of the bytes of Python. */
function bytesOf(data: any): Uint8Array | null {
  if (data === null || data === undefined) return null;
  const buffer = data.getBuffer("u8");
  try {
    return buffer.data.slice();
  } finally {
    buffer.release();
  }
}

export class Kernel {
  private modules = new Map<number, Loaded>();
  private memories = new Map<number, WebAssembly.Memory>();
  private views = new Map<number, Uint8Array>();
  private images = new Map<number, Uint8Array>();
  private guests = new Map<number, Guest>();
  private free: Worker[] = [];
  private counter = 0;
  private fed: Uint8Array[] = [];
  private readonly bell = new SharedArrayBuffer(4);
  private readonly bellWord = new Int32Array(this.bell);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private python: any;
  private transferOffset = 0;
  private heap!: Uint8Array;
  private functions: FunctionOffer[] = [];
  private service!: Service;

  async boot(): Promise<void> {
    this.python = await loadPython();
    const boot = this.python.pyimport("wasmsand.web.boot");
    const buffer = boot.transfer.getBuffer("u8");
    this.transferOffset = buffer.data.byteOffset;
    this.service = boot.boot(this, "/image");
    const offers = this.python.runPython(
      "from wasmsand.abi.wasi.table import HOST_FUNCTIONS as f\n" +
        "'\\n'.join(f'{x.module}\\t{x.name}\\t{x.parameters}' for x in f)",
    ) as string;
    this.functions = offers.split("\n").map((line) => {
      const [module, name, parameters] = line.split("\t") as [string, string, string];
      return { module, name, parameters };
    });
    void this.listen();
    setInterval(() => {
      for (const guest of this.guests.values()) if (!guest.waits) return this.service.tick();
    }, TICK_MS);
  }

  // Requests of the page (wasmsand/web/service.py).

  private readonly pending = new Map<number, (error: any, result?: any, data?: Uint8Array) => void>();
  private requests = 0;
  /** Gets events of started commands, terminals and sessions. */
  onEvent: (handle: number, event: any, data: Uint8Array | null) => void = () => {};

  request(method: string, params: object, data: Uint8Array | null = null): Promise<[any, Uint8Array]> {
    const number = ++this.requests;
    return new Promise((resolve, reject) => {
      this.pending.set(number, (error, result, bytes) =>
        error ? reject(Object.assign(new Error(error.message), error)) : resolve([result, bytes!]),
      );
      this.service.request(number, method, JSON.stringify(params), data ?? undefined);
    });
  }

  reply(number: number, result: string, data: any): void {
    this.settle(number, null, JSON.parse(result), bytesOf(data) ?? undefined);
  }

  fail(number: number, error: string): void {
    this.settle(number, JSON.parse(error));
  }

  notify(handle: number, event: string, data: any): void {
    this.onEvent(handle, JSON.parse(event), bytesOf(data));
  }

  private settle(number: number, error: any, result?: any, data?: Uint8Array): void {
    const done = this.pending.get(number);
    this.pending.delete(number);
    done?.(error, result, data);
  }

  // The bell.

  private async listen(): Promise<void> {
    for (;;) {
      const seen = Atomics.load(this.bellWord, 0);
      this.serve();
      const wait = (Atomics as any).waitAsync(this.bellWord, 0, seen);
      if (wait.async) await wait.value;
      else await null;
    }
  }

  private serve(): void {
    for (const [number, guest] of this.guests) {
      const channel = guest.worker.channel;
      if (!guest.waits && Atomics.load(channel, STATE) === CALLING) {
        guest.waits = true;
        this.respond(number, guest, this.ask(number, channel));
      }
    }
  }

  private ask(number: number, channel: Int32Array): number {
    const word = (index: number) => channel[WORDS + index]!;
    switch (channel[OPERATION]) {
      case Operation.Syscall:
        return this.service.call(
          number, word(0), word(1) >>> 0, word(2) >>> 0, word(3) >>> 0, word(4) >>> 0,
          word(5) >>> 0, word(6) >>> 0,
        );
      case Operation.Invoke: {
        const offer = this.functions[word(0)]!;
        const values: (number | bigint)[] = [];
        let at = 1;
        for (const letter of offer.parameters) {
          if (letter === "I") {
            values.push((BigInt(word(at + 1) >>> 0) << 32n) | BigInt(word(at) >>> 0));
            at += 2;
          } else values.push(word(at++) >>> 0);
        }
        return this.service.other(number, "invoke", word(0), ...values);
      }
      case Operation.ForkAllowed:
        return this.service.other(number, "fork_allowed");
      case Operation.Fork:
        return this.service.other(number, "fork", word(0) >>> 0, word(1) >>> 0);
      case Operation.Tick:
        return this.service.other(number, "tick");
      case Operation.Returned:
        return this.service.other(number, "returned");
      default:
        return this.service.other(
          number, "trapped", TRAP_KINDS[word(0)] ?? "trap",
          channel[OPERATION] === Operation.TrappedAgain,
        );
    }
  }

  private respond(number: number, guest: Guest, answer: number): void {
    if (answer === BLOCKED) return;
    const channel = guest.worker.channel;
    guest.waits = false;
    if (guest.ended) {
      this.guests.delete(number);
      this.free.push(guest.worker);
    }
    channel[MEANING] =
      answer === LEAVE ? Meaning.Leave : answer === HANDLE ? Meaning.Handle : Meaning.Result;
    channel[RESULT] = answer;
    Atomics.store(channel, STATE, ANSWERED);
    Atomics.notify(channel, STATE);
  }

  // What Python calls: guests (web/host.py).

  start_guest(
    guest: number, module: number, memory: number, entry: string, variables: string,
    buffer: number, argument: number,
  ): number {
    let number = guest;
    if (number < 0) {
      number = ++this.counter;
      const worker = this.free.pop() ?? new Worker();
      this.guests.set(number, { worker, waits: false, ended: false });
    }
    this.guests.get(number)!.worker.start({
      module: this.modules.get(module)!.module,
      memory: this.memories.get(memory)!,
      entry,
      variables: variables ? variables.split("\n").map(pairOf) : [],
      buffer,
      argument,
      bell: this.bell,
      functions: this.functions,
    });
    return number;
  }

  answer(number: number, result: number): void {
    this.respond(number, this.guests.get(number)!, result);
  }

  end_guest(number: number, computing: boolean): void {
    const guest = this.guests.get(number)!;
    if (computing) {
      this.guests.delete(number);
      guest.worker.terminate();
    } else guest.ended = true; // its call is still answered
  }

  // What Python calls: time and files.

  wake_at(milliseconds: number): void {
    clearTimeout(this.timer);
    if (milliseconds >= 0) {
      this.timer = setTimeout(() => this.service.time_passed(), milliseconds);
    }
  }

  fetch_module(key: string): void {
    readAsset(key)
      .then((bytes) => this.service.module_fetched(key, this.load(bytes)))
      .catch((error) => this.service.fetch_failed(key, String(error)));
  }

  fetch_memory(key: string): void {
    readAsset(key)
      .then((bytes) => {
        const number = ++this.counter;
        this.images.set(number, bytes);
        this.service.memory_fetched(key, number);
      })
      .catch((error) => this.service.fetch_failed(key, String(error)));
  }

  // What Python calls: modules and memories (engine/javascript/host.py).

  feed(count: number): void {
    this.fed.push(this.transfer(count).slice());
  }

  compile(size: number): unknown {
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const piece of this.fed) {
      bytes.set(piece, at);
      at += piece.length;
    }
    this.fed = [];
    return this.load(bytes);
  }

  private load(bytes: Uint8Array): unknown {
    try {
      const form = reshape(bytes);
      const module = new WebAssembly.Module(form.bytes as BufferSource);
      form.bytes = new Uint8Array(0);
      const id = ++this.counter;
      this.modules.set(id, { module, form });
      const lines = (pairs: [string, number | string][]) =>
        pairs.map((pair) => pair.join("\t")).join("\n");
      return {
        id,
        imports: lines(form.imports),
        procedures: form.procedures.join("\n"),
        addresses: lines(form.addresses),
        variables: lines(form.variables),
        starts_threads: form.startsThreads,
        first_pages: form.firstPages,
        most_pages: form.mostPages,
        problem: "",
      };
    } catch (error) {
      if (error instanceof Refused || error instanceof WebAssembly.CompileError) {
        return { problem: error.message };
      }
      throw error;
    }
  }

  unload(module: number): void {
    this.modules.delete(module);
  }

  new_memory(module: number, first: number, most: number): number {
    let memory: WebAssembly.Memory;
    try {
      memory = new WebAssembly.Memory({ initial: first, maximum: most, shared: true });
    } catch {
      return -1;
    }
    const number = ++this.counter;
    this.memories.set(number, memory);
    const view = this.view(number);
    for (const segment of this.modules.get(module)?.form.segments ?? []) {
      view.set(segment.bytes, segment.address);
    }
    return number;
  }

  private view(memory: number): Uint8Array {
    const view = new Uint8Array(this.memories.get(memory)!.buffer);
    this.views.set(memory, view);
    return view;
  }

  memory_size(memory: number): number {
    // Another worker may have grown it; the buffer is a new one then.
    const buffer = this.memories.get(memory)!.buffer;
    const view = this.views.get(memory)!;
    return view.buffer === buffer ? view.length : this.view(memory).length;
  }

  private transfer(count: number): Uint8Array {
    const heap = this.python._module.HEAPU8 as Uint8Array;
    return heap.subarray(this.transferOffset, this.transferOffset + count);
  }

  read(memory: number, address: number, count: number): void {
    this.transfer(count).set(this.part(memory, address, count));
  }

  write(memory: number, address: number, count: number): void {
    this.part(memory, address, count).set(this.transfer(count));
  }

  private part(memory: number, address: number, count: number): Uint8Array {
    let view = this.views.get(memory)!;
    if (address + count > view.length) view = this.view(memory);
    if (address + count > view.length) throw new RangeError("outside the memory");
    return view.subarray(address, address + count);
  }

  fill(memory: number, image: number, first: number): void {
    const view = this.view(memory);
    view.fill(0);
    view.set(this.images.get(image)!, first);
  }

  copy(source: number, target: number, start: number, end: number): void {
    this.view(target).set(this.view(source).subarray(start, end), start);
  }

  free_memory(memory: number): void {
    this.memories.delete(memory);
    this.views.delete(memory);
  }
}
