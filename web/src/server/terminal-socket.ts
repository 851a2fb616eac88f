// A terminal of a server's sandbox: one WebSocket.
//
// Owns `TerminalSocket`. Rules: the server sends no more than a window before the page has taken
// what came; we send no more than the window that the server named.

import { CommandError, SandboxClosedError } from "../errors.js";
import type { Transport } from "./transport.js";

const PROTOCOL = "wasmsand.terminal.v1";
const WINDOW_BYTES = 256 * 1024;
const PIECE_BYTES = 32 * 1024;

export interface TerminalEnds {
  data(bytes: Uint8Array): void;
  ended(exitCode: number): void;
  lost(): void;
}

interface ServerMessage {
  type: "opened" | "exit" | "error" | "ack";
  pid?: number;
  input_window?: number;
  exit_code?: number;
  bytes?: number;
  error?: { errno?: string | null; message?: string };
}

export class TerminalSocket {
  private room = 0;
  private waiting: (() => void)[] = [];
  private typing: Promise<void> = Promise.resolve();
  private isOver = false;

  private constructor(private readonly socket: WebSocket, private readonly ends: TerminalEnds) {}

  static open(
    transport: Transport, path: string, params: object, ends: TerminalEnds,
  ): Promise<{ terminal: TerminalSocket; pid: number }> {
    const socket = transport.socket(path, PROTOCOL);
    socket.binaryType = "arraybuffer";
    const terminal = new TerminalSocket(socket, ends);
    return new Promise((resolve, reject) => {
      socket.onopen = () => terminal.order({ type: "open", window: WINDOW_BYTES, ...params });
      socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
        if (typeof data !== "string") return ends.data(new Uint8Array(data));
        const message = JSON.parse(data) as ServerMessage;
        if (message.type === "opened") {
          terminal.room = message.input_window!;
          resolve({ terminal, pid: message.pid! });
        } else if (message.type === "error") {
          const { errno, message: text = "the terminal has failed" } = message.error ?? {};
          reject(new CommandError(text, errno ?? "EIO"));
        } else terminal.received(message);
      };
      socket.onclose = () => {
        reject(new CommandError("the server refused a terminal, or cannot be reached"));
        if (!terminal.isOver) terminal.over(() => ends.lost());
      };
    });
  }

  private received(message: ServerMessage): void {
    if (message.type === "exit") this.over(() => this.ends.ended(message.exit_code!));
    else if (message.type === "ack") {
      this.room += message.bytes!;
      this.wake();
    }
  }

  private over(tell: () => void): void {
    this.isOver = true;
    this.wake();
    tell();
  }

  private wake(): void {
    for (const go of this.waiting.splice(0)) go();
  }

  private order(message: object): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Type. Calls are served in their order. */
  write(bytes: Uint8Array): Promise<void> {
    const written = this.typing.then(() => this.type(bytes));
    this.typing = written.catch(() => {});
    return written;
  }

  private async type(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      while (this.room <= 0 && !this.isOver) {
        await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
      if (this.isOver) throw new SandboxClosedError("the terminal has ended", "EBADF");
      const piece = bytes.slice(at, at + Math.min(PIECE_BYTES, this.room));
      this.room -= piece.length;
      at += piece.length;
      this.socket.send(piece);
    }
  }

  taken(bytes: number): void {
    this.order({ type: "ack", bytes });
  }

  resize(cols: number, rows: number): void {
    this.order({ type: "resize", cols, rows });
  }

  hangUp(): void {
    this.order({ type: "hangup" });
  }

  /** Drop the connection; the programs get SIGHUP. */
  drop(): void {
    this.isOver = true;
    this.socket.onclose = null;
    this.socket.close();
    this.wake();
  }
}
