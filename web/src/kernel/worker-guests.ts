// The workers in which guests run, and the bell that they ring.
//
// Owns `WorkerGuests`: starting, answering and ending guests. Rules: a worker runs one program after
// another; only a guest that computes and has to end costs its worker. Spare workers are started in
// advance, because a start takes longer than most commands.

import {
  ANSWERED, CALLING, CHANNEL_WORDS, Meaning, MEANING, OPERATION, Operation, OVER, RESULT, STATE, WORDS,
  type FunctionOffer, type Start,
} from "../guest/channel.js";
import { TRAP_KINDS } from "../guest/program.js";
import { spawnGuest, type GuestWorker } from "#platform/kernel";
import { BLOCKED, HANDLE, LEAVE, variablesOf, type GuestHost } from "./guest-host.js";
import type { Memories } from "./memories.js";
import type { Service } from "./service.js";

/** Workers that wait for a guest. */
const SPARE_LEAST = 2;
const SPARE_MOST = 8;
/** How long a worker may take to leave a program that has ended. Programs may catch the exception by
 *  which they should leave. */
const LEAVING_MS = 5_000;
/** A worker for guests, and the channel on which they call. */
class Seat {
  private readonly memory = new SharedArrayBuffer(4 * CHANNEL_WORDS);
  readonly channel = new Int32Array(this.memory);
  private readonly worker: GuestWorker = spawnGuest();
  /** When its program ended, while the worker leaves it. */
  endedAt = 0;

  /** Run a program as soon as the last one has been left. */
  start(start: Omit<Start, "channel">): void {
    this.worker.start({ ...start, channel: this.memory });
  }

  terminate(): void {
    this.worker.terminate();
  }
}

interface Guest {
  seat: Seat;
  /** Whether Python owes it an answer. */
  waits: boolean;
  /** Whether it ends with its next answer. */
  ended: boolean;
}

export class WorkerGuests implements GuestHost {
  private readonly guests = new Map<number, Guest>();
  private readonly spare: Seat[] = [];
  private readonly leaving = new Set<Seat>();
  private sweep: ReturnType<typeof setTimeout> | null = null;
  private counter = 0;
  private readonly bell = new SharedArrayBuffer(4);
  private readonly bellWord = new Int32Array(this.bell);
  private functions: FunctionOffer[] = [];
  private service!: Service;

  constructor(private readonly memories: Memories) {
    this.addSpare();
  }

  /** Serve the guests of this machine, from now on. */
  serveWith(service: Service, functions: FunctionOffer[]): void {
    this.service = service;
    this.functions = functions;
    void this.listen();
  }

  /** Whether a guest computes. */
  get computing(): boolean {
    for (const guest of this.guests.values()) if (!guest.waits) return true;
    return false;
  }

  // Called by Python (web/host.py).

  start_guest(
    guest: number, module: number, memory: number, entry: string, variables: string,
    buffer: number, argument: number,
  ): number {
    let number = guest;
    if (number < 0) {
      number = ++this.counter;
      this.guests.set(number, { seat: this.takeSeat(), waits: false, ended: false });
    }
    this.guests.get(number)!.seat.start({
      module: this.memories.module(module),
      memory: this.memories.memory(memory),
      entry,
      variables: variablesOf(variables),
      buffer,
      argument,
      bell: this.bell,
      functions: this.functions,
    });
    return number;
  }

  answer(number: number, result: number): void {
    this.reply(number, this.guests.get(number)!, result);
  }

  end_guest(number: number, computing: boolean): void {
    const guest = this.guests.get(number)!;
    if (computing) {
      this.guests.delete(number);
      guest.seat.terminate();
    } else guest.ended = true; // its call is still answered
  }

  // Workers.

  private takeSeat(): Seat {
    const seat = this.spare.pop() ?? new Seat();
    if (this.spare.length < SPARE_LEAST) setTimeout(() => this.addSpare(), 0);
    return seat;
  }

  private addSpare(): void {
    while (this.spare.length < SPARE_LEAST) this.spare.unshift(new Seat());
  }

  /** A worker leaves the program that it has run. */
  private giveBack(seat: Seat): void {
    seat.endedAt = performance.now();
    this.leaving.add(seat);
    this.sweep ??= setTimeout(() => this.endSlow(), LEAVING_MS);
  }

  private endSlow(): void {
    for (const seat of this.leaving) {
      if (performance.now() - seat.endedAt < LEAVING_MS) continue;
      this.leaving.delete(seat);
      seat.terminate();
    }
    this.sweep = this.leaving.size ? setTimeout(() => this.endSlow(), LEAVING_MS) : null;
  }

  private reuse(): void {
    for (const seat of this.leaving) {
      if (Atomics.load(seat.channel, STATE) !== OVER) continue;
      this.leaving.delete(seat);
      if (this.spare.length < SPARE_MOST) this.spare.push(seat);
      else seat.terminate();
    }
  }

  // The bell.

  private async listen(): Promise<void> {
    for (;;) {
      const seen = Atomics.load(this.bellWord, 0);
      this.serve();
      const wait = Atomics.waitAsync(this.bellWord, 0, seen);
      if (wait.async) await wait.value;
      else await null;
    }
  }

  private serve(): void {
    if (this.leaving.size) this.reuse();
    for (const [number, guest] of this.guests) {
      const channel = guest.seat.channel;
      if (!guest.waits && Atomics.load(channel, STATE) === CALLING) {
        guest.waits = true;
        this.reply(number, guest, this.ask(number, channel));
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
      case Operation.Invoke:
        return this.service.other(number, "invoke", word(0), ...this.invokeArguments(channel));
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

  private invokeArguments(channel: Int32Array): (number | bigint)[] {
    const word = (index: number) => channel[WORDS + index]! >>> 0;
    const offer = this.functions[word(0)];
    const values: (number | bigint)[] = [];
    let at = 1;
    for (const letter of offer?.parameters ?? "") {
      if (letter === "I") {
        values.push((BigInt(word(at + 1)) << 32n) | BigInt(word(at)));
        at += 2;
      } else values.push(word(at++));
    }
    return values;
  }

  private reply(number: number, guest: Guest, answer: number): void {
    if (answer === BLOCKED) return;
    const channel = guest.seat.channel;
    guest.waits = false;
    if (guest.ended) {
      this.guests.delete(number);
      this.giveBack(guest.seat);
    }
    channel[MEANING] =
      answer === LEAVE ? Meaning.Leave : answer === HANDLE ? Meaning.Handle : Meaning.Result;
    channel[RESULT] = answer;
    Atomics.store(channel, STATE, ANSWERED);
    Atomics.notify(channel, STATE);
  }
}
