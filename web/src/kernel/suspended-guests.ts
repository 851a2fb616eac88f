// Guests in the kernel's worker, for pages that have no shared memory.
//
// Owns `SuspendedGuests`: starting, answering and ending guests that suspend themselves by JSPI.
// Rules: a guest begins and goes on only when Python has returned. A guest that has to end while it
// computes is never resumed again.

import type { FunctionOffer } from "../guest/channel.js";
import { SuspendedProgram, type ProgramStart } from "../guest/suspended-program.js";
import { variablesOf, type GuestHost } from "./guest-host.js";
import type { Memories } from "./memories.js";
import type { Service } from "./service.js";
import { Turns } from "./turns.js";

interface Guest {
  program: SuspendedProgram;
  /** The program that it executes when it has left the current one. */
  next: SuspendedProgram | null;
  /** Whether it ends when it leaves its program. */
  ended: boolean;
}

export class SuspendedGuests implements GuestHost {
  private readonly guests = new Map<number, Guest>();
  private readonly turns = new Turns();
  private counter = 0;
  private functions: FunctionOffer[] = [];
  private service!: Service;

  constructor(private readonly memories: Memories) {}

  serveWith(service: Service, functions: FunctionOffer[]): void {
    this.service = service;
    this.functions = functions;
  }

  get computing(): boolean {
    for (const { program } of this.guests.values()) if (!program.waits) return true;
    return false;
  }

  start_guest(
    guest: number, module: number, memory: number, entry: string, variables: string,
    buffer: number, argument: number,
  ): number {
    const number = guest < 0 ? ++this.counter : guest;
    const program = this.program(number, {
      module: this.memories.module(module), memory: this.memories.memory(memory), entry,
      variables: variablesOf(variables), buffer, argument, functions: this.functions,
    });
    const running = this.guests.get(number);
    if (running) running.next = program;
    else {
      this.guests.set(number, { program, next: null, ended: false });
      program.start();
    }
    return number;
  }

  answer(number: number, result: number): void {
    this.guests.get(number)!.program.answer(result);
  }

  end_guest(number: number, computing: boolean): void {
    const guest = this.guests.get(number)!;
    if (computing) {
      this.guests.delete(number);
      guest.program.abandon();
    } else guest.ended = true; // its call is still answered
  }

  private program(number: number, start: ProgramStart): SuspendedProgram {
    return new SuspendedProgram(number, start, this.service, this.turns, () => this.left(number));
  }

  /** A guest has left its program. */
  private left(number: number): void {
    const guest = this.guests.get(number);
    if (!guest) return;
    if (guest.ended) this.guests.delete(number);
    else if (guest.next) {
      guest.program = guest.next;
      guest.next = null;
      guest.program.start();
    }
  }
}
