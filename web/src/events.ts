// Who listens to events.
//
// Owns `Events`. Rules: an event may come before its listener, because it follows the answer to the
// request that started it; it is kept for that listener.

import type { KernelEvent, Listener } from "./connection.js";

const EARLY_MOST = 10_000;
const NOTHING = new Uint8Array(0);

export class Events {
  private readonly listeners = new Map<number, Listener>();
  private early: [number, KernelEvent, Uint8Array][] = [];

  /** `taken` is told how many bytes a listener has got. */
  constructor(private readonly taken: (handle: number, bytes: number) => void) {}

  get count(): number {
    return this.listeners.size;
  }

  listen(handle: number, listener: Listener): void {
    this.listeners.set(handle, listener);
    const missed = this.early.filter(([of]) => of === handle);
    this.early = this.early.filter(([of]) => of !== handle);
    for (const [, event, data] of missed) this.call(listener, handle, event, data);
  }

  unlisten(handle: number): void {
    this.listeners.delete(handle);
  }

  deliver(handle: number, event: KernelEvent, data: Uint8Array = NOTHING): void {
    const listener = this.listeners.get(handle);
    if (listener) this.call(listener, handle, event, data);
    else if (this.early.length < EARLY_MOST) this.early.push([handle, event, data]);
  }

  /** The sandbox is gone: tell all listeners. */
  lose(): void {
    const listeners = [...this.listeners.values()];
    this.listeners.clear();
    for (const listener of listeners) listener({ event: "lost" }, NOTHING);
  }

  private call(listener: Listener, handle: number, event: KernelEvent, data: Uint8Array): void {
    const bytes = data.length; // the listener may transfer the data elsewhere
    try {
      listener(event, data);
    } finally {
      if (bytes) this.taken(handle, bytes);
    }
  }
}
