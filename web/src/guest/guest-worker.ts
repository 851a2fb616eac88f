// A worker that runs one program after another.
//
// Owns the program's calls to the kernel, and fork by Asyncify on the program's side. Rules: only
// the two functions of the Linux ABI and those of WASI are imports of a program, and each only
// passes numbers to the kernel. A program has no other way out of its memory.

import {
  CALLING, CHANNEL_WORDS, IDLE, MEANING, Meaning, OPERATION, Operation, OVER, RESULT, STATE,
  WORDS, type FunctionOffer, type Start,
} from "./channel.js";
import { MEMORY_MODULE, MEMORY_NAME, POLL } from "../kernel/module-form.js";
import { STARTS, TURNS } from "../kernel/fuel.js";
import { setTurns } from "./turn-functions.js";
import { EAGAIN, kindOfTrap, LEFT, Phase, type Entry } from "./program.js";
import { SharedGarbage } from "../memory-pressure.js";
import { onLargestStack, onStart } from "#platform/guest";

class Program {
  private readonly channel: Int32Array;
  private readonly bell: Int32Array;
  private exports!: Record<string, unknown>;
  private phase = Phase.None;
  private buffer = 0;
  private result = 0;
  /** How many signal handlers run that a loop has called. */
  private nested = 0;

  constructor(private readonly start: Start) {
    this.channel = new Int32Array(start.channel, 0, CHANNEL_WORDS);
    this.bell = new Int32Array(start.bell);
  }

  private instantiate(): void {
    const { module, functions, variables } = this.start;
    this.exports = new WebAssembly.Instance(module, this.imports(functions)).exports;
    // The call alone lets the engine end this worker.
    if (TURNS in this.exports) setTurns(this.exports[TURNS], () => 0, () => 0);
    if (STARTS in this.exports) (this.exports[STARTS] as () => void)();
    for (const [name, value] of variables) {
      (this.exports[name] as WebAssembly.Global).value = value | 0;
    }
  }

  private imports(functions: FunctionOffer[]): WebAssembly.Imports {
    const offered: Record<string, Record<string, WebAssembly.ImportValue>> = {
      [MEMORY_MODULE]: { [MEMORY_NAME]: this.start.memory },
      linux: {
        syscall: (nr: number, a: number, b: number, c: number, d: number, e: number, f: number) =>
          this.syscall(nr, a, b, c, d, e, f),
        fork: (buffer: number) => this.fork(buffer),
      },
    };
    functions.forEach((offer, index) => {
      (offered[offer.module] ??= {})[offer.name] = (...values: (number | bigint)[]) =>
        this.invoke(index, values);
    });
    return offered;
  }

  private syscall(
    nr: number, a: number, b: number, c: number, d: number, e: number, f: number,
  ): number {
    if (nr === POLL) return this.poll();
    const channel = this.channel;
    channel[WORDS] = nr;
    channel[WORDS + 1] = a;
    channel[WORDS + 2] = b;
    channel[WORDS + 3] = c;
    channel[WORDS + 4] = d;
    channel[WORDS + 5] = e;
    channel[WORDS + 6] = f;
    return this.ask(Operation.Syscall);
  }

  private invoke(index: number, values: (number | bigint)[]): number {
    const channel = this.channel;
    let at = WORDS;
    channel[at++] = index;
    for (const value of values) {
      if (typeof value === "bigint") {
        channel[at++] = Number(BigInt.asIntN(32, value));
        channel[at++] = Number(BigInt.asIntN(32, value >> 32n));
      } else channel[at++] = value;
    }
    return this.ask(Operation.Invoke);
  }

  /** Make the call that is in the channel, and wait for its answer. */
  private ask(operation: Operation): number {
    const channel = this.channel;
    channel[OPERATION] = operation;
    this.ring(CALLING);
    while (Atomics.load(channel, STATE) === CALLING) Atomics.wait(channel, STATE, CALLING);
    channel[STATE] = IDLE;
    if (channel[MEANING] === Meaning.Leave) throw LEFT;
    return channel[MEANING] === Meaning.Handle ? NaN : channel[RESULT]!;
  }

  private ring(state: number): void {
    Atomics.store(this.channel, STATE, state);
    Atomics.add(this.bell, 0, 1);
    Atomics.notify(this.bell, 0);
  }

  async run(): Promise<void> {
    try {
      this.instantiate();
      await this.runProgram();
      this.ask(Operation.Returned);
    } catch (error) {
      if (error !== LEFT) this.trapped(error);
    }
    this.ring(OVER);
  }

  private async runProgram(): Promise<void> {
    const exported = onLargestStack(this.exports[this.start.entry] as Entry);
    const { argument } = this.start;
    const entry = argument < 0 ? () => exported() : () => exported(argument);
    if (this.start.buffer >= 0) {
      this.buffer = this.start.buffer;
      this.startRewind(0);
    }
    await entry();
    while (this.phase === Phase.Unwinding) {
      this.asyncify("stop_unwind");
      this.startRewind(this.makeChild());
      await entry();
    }
  }

  private trapped(error: unknown): void {
    try {
      this.channel[WORDS] = kindOfTrap(error);
      if (Number.isNaN(this.ask(Operation.Trapped))) {
        try {
          (this.exports.__signal_run as () => void)();
        } catch (again) {
          if (again === LEFT) throw again;
        }
        this.channel[WORDS] = kindOfTrap(error);
        this.ask(Operation.TrappedAgain);
      }
    } catch (left) {
      if (left !== LEFT) throw left;
    }
  }

  /** The program saw its signal flag in a loop. */
  private poll(): number {
    if (this.phase !== Phase.None || this.nested) return 0;
    if (this.ask(Operation.Tick)) {
      this.nested++;
      try {
        (this.exports.__signal_run as () => void)();
      } finally {
        this.nested--;
      }
    }
    return 0;
  }

  // Fork.

  private asyncify(what: string, buffer?: number): void {
    const call = this.exports[`asyncify_${what}`] as (buffer?: number) => void;
    if (buffer === undefined) call();
    else call(buffer);
  }

  private fork(buffer: number): number {
    if (this.phase === Phase.Rewinding) {
      this.asyncify("stop_rewind");
      this.phase = Phase.None;
      return this.result;
    }
    if (this.nested) return -EAGAIN;
    const refusal = this.ask(Operation.ForkAllowed);
    if (refusal) return refusal;
    this.asyncify("start_unwind", buffer);
    this.phase = Phase.Unwinding;
    this.buffer = buffer >>> 0;
    return 0;
  }

  private makeChild(): number {
    this.channel[WORDS] = this.buffer;
    const pointer = this.exports.__stack_pointer as WebAssembly.Global | undefined;
    this.channel[WORDS + 1] = pointer ? pointer.value : -1;
    return this.ask(Operation.Fork);
  }

  private startRewind(result: number): void {
    this.result = result;
    this.asyncify("start_rewind", this.buffer);
    this.phase = Phase.Rewinding;
  }
}

/** How much memory of ended programs may wait to be collected. */
const GARBAGE_BYTES = 64 * 1024 * 1024;
const garbage = new SharedGarbage(GARBAGE_BYTES);
onStart(async (start: Start) => {
  await new Program(start).run();
  garbage.add(start.memory.buffer.byteLength);
});
