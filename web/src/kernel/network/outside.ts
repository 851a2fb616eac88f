// Requests of guests, made by the host.
//
// Owns `Outside`: what Python calls for the network (web/host.py), and what it is told. Rules: Python
// has decided about a request before it is made, and gets a piece of the answer when it asks for one.
// A request that gets no answer for a while is given up.

import { findsNames, makeRequest, type OutsideAnswer } from "#platform/requests";
import { copyOf, type PythonBuffer, type Service } from "../service.js";
import { Authority } from "./certificates.js";
import type { Bytes } from "./der.js";
import { TlsServer } from "./tls-server.js";

/** How long the head of an answer, or the next piece of it, may take. */
const PATIENCE_MS = 300_000;
/** Python gets at most so many bytes at once. */
const PIECE_BYTES = 65_536;

interface Open {
  control: AbortController;
  answer: OutsideAnswer | null;
  /** What was read and not asked for yet. */
  rest: Uint8Array;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return (error.message + cause || error.name).slice(0, 500);
}

function placeOf(place: string): { address: string; port: number } | null {
  const [address, port] = place.split(" ");
  return address ? { address, port: Number(port) } : null;
}

export class Outside {
  private authority: Promise<Authority> | null = null;
  private readonly requests = new Map<number, Open>();
  private readonly connections = new Map<number, TlsServer>();

  constructor(private readonly service: () => Service) {}

  /** The functions that Python calls. */
  functions(): object {
    return {
      make_authority: () => void this.makeAuthority(),
      fetch_start: (
        number: number, method: string, url: string, headers: string, body: PythonBuffer, place: string,
      ) => void this.start(number, method, url, headers, copyOf(body)!, place),
      finds_names: () => findsNames,
      fetch_more: (number: number) => void this.more(number),
      fetch_stop: (number: number) => this.stop(number),
      tls_open: (number: number, host: string) => this.open(number, host),
      tls_receive: (number: number, data: PythonBuffer) =>
        this.connections.get(number)?.receive(copyOf(data)!),
      tls_send: (number: number, data: PythonBuffer) =>
        this.connections.get(number)?.send(copyOf(data)!),
      tls_finish: (number: number) => this.connections.get(number)?.finish(),
      tls_close: (number: number) => {
        this.connections.get(number)?.close();
        this.connections.delete(number);
      },
    };
  }

  private ownAuthority(): Promise<Authority> {
    return (this.authority ??= Authority.make());
  }

  private async makeAuthority(): Promise<void> {
    const { pem } = await this.ownAuthority();
    this.service().authority_made(pem);
  }

  private open(number: number, host: string): void {
    const tell = (event: string, text: string, data: Bytes | null) => {
      // Not within a call of Python.
      this.service().heard(number, event, text, data ?? undefined);
    };
    this.connections.set(number, new TlsServer(this.ownAuthority(), host, tell));
  }

  // Requests.

  private tell(number: number, event: string, text: string, data?: Uint8Array): void {
    if (this.requests.has(number)) this.service().heard(number, event, text, data);
  }

  private async patiently<Result>(open: Open, work: Promise<Result>): Promise<Result> {
    const late = () => open.control.abort(new Error("the host does not answer"));
    const timer = setTimeout(late, PATIENCE_MS);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }

  private async start(
    number: number, method: string, url: string, headers: string, body: Uint8Array<ArrayBuffer>,
    place: string,
  ): Promise<void> {
    const open: Open = { control: new AbortController(), answer: null, rest: new Uint8Array(0) };
    this.requests.set(number, open);
    await null; // Python is still in its call
    try {
      const answer = await this.patiently(open, makeRequest({
        method, url, headers: JSON.parse(headers) as [string, string][], body,
        signal: open.control.signal, place: placeOf(place),
        mayUse: (address) => this.service().may_use(number, address),
      }));
      open.answer = answer;
      const { status, reason } = answer;
      this.tell(number, "head", JSON.stringify({ status, reason, headers: answer.headers }));
    } catch (error) {
      this.tell(number, "fail", reasonOf(error));
    }
  }

  private async more(number: number): Promise<void> {
    const open = this.requests.get(number);
    if (!open?.answer) return;
    await null; // Python is still in its call
    try {
      while (open.rest.length === 0) {
        const read = await this.patiently(open, open.answer.read());
        if (read === null) return this.tell(number, "end", "");
        open.rest = read;
      }
      const piece = open.rest.slice(0, PIECE_BYTES);
      open.rest = open.rest.subarray(piece.length);
      this.tell(number, "data", "", piece);
    } catch (error) {
      this.tell(number, "fail", reasonOf(error));
    }
  }

  private stop(number: number): void {
    const open = this.requests.get(number);
    this.requests.delete(number);
    open?.control.abort();
  }
}
