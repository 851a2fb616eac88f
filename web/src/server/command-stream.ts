// A started command of a server's sandbox: its output, batch after batch.
//
// Owns `CommandStream`. Rules: the next batch is asked for only when the listener has got the last
// one; the end is reported after all output.

import type { Events } from "../events.js";
import { bytesIn, camelCase, type Fields } from "./forms.js";
import type { Transport } from "./transport.js";

const WAIT_MS = 20_000;

interface Batch {
  number: number;
  pieces: (Fields & { fd: number })[];
  ended: boolean;
}

export class CommandStream {
  constructor(
    private readonly transport: Transport, private readonly path: string,
    private readonly handle: number, private readonly events: Events,
  ) {}

  /** Read until the end. Rejects if the server cannot be asked any more. */
  async follow(isClosed: () => boolean): Promise<void> {
    for (let after = 0; ; ) {
      const query = { after, wait_ms: WAIT_MS };
      const batch = await this.transport.json<Batch>("GET", `${this.path}/output`, { query });
      if (isClosed()) return;
      for (const piece of batch.pieces) {
        const data = bytesIn(piece, "text", "base64");
        this.events.deliver(this.handle, { event: "output", fd: piece.fd }, data);
      }
      after = batch.number;
      if (batch.ended) break;
    }
    for (;;) {
      const state = await this.transport.json<{ end: Fields | null }>("GET", this.path, {
        query: { wait_ms: WAIT_MS },
      });
      if (isClosed()) return;
      if (!state.end) continue;
      this.events.deliver(this.handle, { event: "ended", ...camelCase(state.end) });
      return;
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { written } = await this.transport.json<{ written: number }>(
        "POST", `${this.path}/input`, { bytes: bytes.subarray(at) },
      );
      at += written;
    }
  }

  async closeStdin(): Promise<void> {
    await this.transport.send("DELETE", `${this.path}/input`);
  }

  async kill(): Promise<void> {
    await this.transport.send("POST", `${this.path}/kill`);
  }
}
