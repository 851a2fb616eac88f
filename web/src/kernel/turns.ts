// Turns on the kernel's worker, when guests run in it too.
//
// Owns `Turns`. Rules: answers of promises alone would keep the worker from timers and messages, so
// whoever has had a turn that was long enough waits for the next one. Those who wait get their turns
// in order, one at each round of the event loop.

import { soon } from "#platform/kernel";

/** How long guests run before timers, messages and others get their turn. */
const TURN_MS = 5;

export class Turns {
  private began = performance.now();
  private readonly waiting: (() => void)[] = [];

  /** Whether others should get a turn now. */
  due(): boolean {
    return performance.now() - this.began >= TURN_MS;
  }

  /** Resolves at the caller's next turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      if (this.waiting.length === 1) soon(this.begin);
    });
  }

  private readonly begin = () => {
    this.began = performance.now();
    this.waiting.shift()!();
    if (this.waiting.length) soon(this.begin);
  };
}
