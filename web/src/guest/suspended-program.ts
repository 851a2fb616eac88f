// A program that runs in the kernel's worker, and is suspended while it waits.
//
// Owns the program's calls to the kernel, its turns, and fork by Asyncify on the program's side.
// Rules: every import suspends the program until its call has an answer, so no function of
// JavaScript may be between the program's entry and a call. A program that has been left is never
// resumed, even if it catches the exception by which it should leave.

import { BLOCKED, HANDLE } from "../kernel/guest-host.js";
import { NESTED, STARTS, TURNS } from "../kernel/fuel.js";
import { MEMORY_MODULE, MEMORY_NAME } from "../kernel/module-form.js";
import type { Service } from "../kernel/service.js";
import type { Turns } from "../kernel/turns.js";
import type { Start } from "./channel.js";
import { setTurns } from "./turn-functions.js";
import { EAGAIN, kindOfTrap, LEFT, Phase, TRAP_KINDS } from "./program.js";

export type ProgramStart = Omit<Start, "channel" | "bell">;

type Result = number | Promise<number>;
type Call = (service: Service, guest: number) => number;

/** What engines with JSPI add to WebAssembly. */
const { Suspending, promising } = WebAssembly as unknown as {
  Suspending: new (act: (...values: never[]) => Result) => WebAssembly.ImportValue;
  promising: (exported: unknown) => (...values: number[]) => Promise<void>;
};

export class SuspendedProgram {
  /** Whether it waits for an answer of the kernel. */
  waits = false;
  private exports!: Record<string, unknown>;
  private answered: ((answer: number) => void) | null = null;
  /** An answer that came before the program waited for it. */
  private early: number | null = null;
  private isLeft = false;
  private phase = Phase.None;
  private buffer = 0;
  private result = 0;

  constructor(
    private readonly guest: number, private readonly begin: ProgramStart,
    private readonly service: Service, private readonly turns: Turns,
    private readonly left: () => void,
  ) {}

  /** Run it, at its first turn. */
  start(): void {
    void this.turns.next().then(() => this.run());
  }

  /** Python answers the call for which it waits. This may come before the call has returned that it
   *  waits. */
  answer(result: number): void {
    if (!this.answered) {
      this.early = result;
      return;
    }
    this.waits = false;
    this.answered(result);
    this.answered = null;
  }

  /** Do not resume it any more. */
  abandon(): void {
    this.isLeft = true;
  }

  // Calls.

  private imports(): WebAssembly.Imports {
    const offered: Record<string, Record<string, WebAssembly.ImportValue>> = {
      [MEMORY_MODULE]: { [MEMORY_NAME]: this.begin.memory },
      linux: {
        syscall: new Suspending(
          (nr: number, a: number, b: number, c: number, d: number, e: number, f: number) =>
            this.ask((service, guest) =>
              service.call(guest, nr, a >>> 0, b >>> 0, c >>> 0, d >>> 0, e >>> 0, f >>> 0)),
        ),
        fork: new Suspending((buffer: number) => this.fork(buffer)),
      },
    };
    this.begin.functions.forEach((offer, index) => {
      (offered[offer.module] ??= {})[offer.name] = new Suspending(
        (...values: (number | bigint)[]) => {
          const words = values.map((value) =>
            typeof value === "bigint" ? BigInt.asUintN(64, value) : value >>> 0);
          return this.ask((service, guest) => service.other(guest, "invoke", index, ...words));
        },
      );
    });
    return offered;
  }

  private ask(call: Call): Result {
    if (this.isLeft) return NEVER;
    if (this.turns.due()) return this.askLater(call);
    return this.meaning(call(this.service, this.guest));
  }

  private async askLater(call: Call): Promise<number> {
    await this.turns.next();
    if (this.isLeft) return NEVER;
    return this.meaning(call(this.service, this.guest));
  }

  private meaning(answer: number): Result {
    if (answer < BLOCKED) return answer;
    if (answer === BLOCKED) {
      if (this.early !== null) {
        const early = this.early;
        this.early = null;
        return this.meaning(early);
      }
      this.waits = true;
      return new Promise<number>((resolve) => (this.answered = resolve)).then((late) =>
        this.meaning(late));
    }
    if (answer === HANDLE) return NaN;
    this.isLeft = true;
    this.left();
    throw LEFT;
  }

  /** The program's work is enough for one turn. 1 if it has to run signal handlers. */
  private async yield(): Promise<number> {
    await this.turns.next();
    if (this.isLeft) return NEVER;
    const nested = (this.exports[NESTED] as WebAssembly.Global).value as number;
    if (this.phase !== Phase.None || nested || !this.hasSignal()) return 0;
    return this.ask((service, guest) => service.other(guest, "tick"));
  }

  /** Whether the kernel has set the program's signal flag. */
  private hasSignal(): boolean {
    const address = (this.exports.__signal_flag as WebAssembly.Global | undefined)?.value as number;
    const { buffer } = this.begin.memory;
    if (address === undefined || (address >>> 0) + 4 > buffer.byteLength) return false;
    return new DataView(buffer).getInt32(address >>> 0, true) !== 0;
  }

  // Life.

  private async run(): Promise<void> {
    if (this.isLeft) return;
    try {
      this.instantiate();
      if (STARTS in this.exports) await promising(this.exports[STARTS])();
      await this.runProgram();
      await this.ask((service, guest) => service.other(guest, "returned"));
    } catch (error) {
      if (error !== LEFT) await this.trapped(error);
    }
  }

  private instantiate(): void {
    this.exports = new WebAssembly.Instance(this.begin.module, this.imports()).exports;
    const suspended = new Suspending(() => this.yield());
    setTurns(this.exports[TURNS], () => Number(this.turns.due()), suspended);
    for (const [name, value] of this.begin.variables) {
      (this.exports[name] as WebAssembly.Global).value = value | 0;
    }
  }

  private async runProgram(): Promise<void> {
    const exported = promising(this.exports[this.begin.entry]);
    const { argument, buffer } = this.begin;
    const entry = argument < 0 ? () => exported() : () => exported(argument);
    if (buffer >= 0) {
      this.buffer = buffer;
      this.startRewind(0);
    }
    await entry();
    while (this.phase === Phase.Unwinding) {
      this.asyncify("stop_unwind");
      this.startRewind(await this.makeChild());
      await entry();
    }
  }

  private async trapped(error: unknown): Promise<void> {
    const tell = (again: boolean) =>
      this.ask((service, guest) =>
        service.other(guest, "trapped", TRAP_KINDS[kindOfTrap(error)], again));
    try {
      if (!Number.isNaN(await tell(false))) return;
      try {
        await promising(this.exports.__signal_run)();
      } catch (again) {
        if (again === LEFT) throw again;
      }
      await tell(true);
    } catch (left) {
      if (left !== LEFT) throw left;
    }
  }

  // Fork.

  private asyncify(what: string, buffer?: number): void {
    const call = this.exports[`asyncify_${what}`] as (buffer?: number) => void;
    if (buffer === undefined) call();
    else call(buffer);
  }

  private async fork(buffer: number): Promise<number> {
    if (this.phase === Phase.Rewinding) {
      this.asyncify("stop_rewind");
      this.phase = Phase.None;
      return this.result;
    }
    if ((this.exports[NESTED] as WebAssembly.Global).value) return -EAGAIN;
    const refusal = await this.ask((service, guest) => service.other(guest, "fork_allowed"));
    if (refusal) return refusal;
    this.asyncify("start_unwind", buffer);
    this.phase = Phase.Unwinding;
    this.buffer = buffer >>> 0;
    return 0;
  }

  private makeChild(): Result {
    const pointer = this.exports.__stack_pointer as WebAssembly.Global | undefined;
    const stack = pointer ? pointer.value >>> 0 : 0xffff_ffff;
    return this.ask((service, guest) => service.other(guest, "fork", this.buffer, stack));
  }

  private startRewind(result: number): void {
    this.result = result;
    this.asyncify("start_rewind", this.buffer);
    this.phase = Phase.Rewinding;
  }
}

/** The answer to programs that have been left. */
const NEVER = new Promise<number>(() => {});
