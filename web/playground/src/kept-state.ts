// The sandbox's files in the browser's storage, so that a reload goes on where it was.
//
// Owns one saved state. Rules: it is written a moment after the last change and when the page is
// hidden. If storage is denied or full, the page works without it and says so once.

import { StateStore, type Sandbox } from "../../src/index.js";

const NAME = "playground";
const UNREADABLE = "playground-unreadable";
const QUIET_MS = 1500;

export class KeptState {
  private sandbox: Sandbox | undefined;
  private store: StateStore | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private writing: Promise<void> = Promise.resolve();
  private denied = false;

  constructor(private readonly say: (text: string, bad?: boolean) => void) {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.timer !== undefined) void this.write();
    });
  }

  /** Why nothing is kept; empty if it is. */
  problem = "";
  /** Whether everything is written. */
  isSaved = true;

  /** Load what was kept. */
  async restore(sandbox: Sandbox): Promise<void> {
    this.sandbox = sandbox;
    try {
      this.store ??= await StateStore.open();
      const state = await this.store.get(NAME);
      if (state) await this.load(sandbox, this.store, state);
    } catch (error) {
      this.deny(error);
    }
  }

  private async load(sandbox: Sandbox, store: StateStore, state: Uint8Array): Promise<void> {
    try {
      await sandbox.load(state);
    } catch (error) {
      await store.put(UNREADABLE, state);
      this.problem = `the kept files cannot be read, and are put aside as ${UNREADABLE}: ${String(error)}`;
      this.say(this.problem, true);
    }
  }

  /** Files may have changed. */
  changed(): void {
    this.isSaved = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.write(), QUIET_MS);
  }

  /** Write what has changed, now. */
  async flush(): Promise<void> {
    if (this.timer !== undefined || !this.isSaved) await this.write();
  }

  async forget(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.writing;
    await this.store?.delete(NAME).catch(() => {});
  }

  private write(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(() => this.writeNow()).catch((error) => this.deny(error));
    return this.writing;
  }

  private async writeNow(): Promise<void> {
    if (!this.store || !this.sandbox || this.sandbox.isDestroyed || this.denied) return;
    await this.store.put(NAME, await this.sandbox.save());
    this.isSaved = this.timer === undefined;
  }

  private deny(error: unknown): void {
    if (this.denied) return;
    this.denied = true;
    this.problem = `files are not kept over a reload: ${String(error)}`;
    this.say(this.problem, true);
  }
}
