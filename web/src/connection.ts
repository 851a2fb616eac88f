// What `Sandbox` needs of the machine behind it.
//
// Owns the interface. Rules: methods and fields of requests are those of docs/protocols/json-rpc.md,
// except that bytes travel beside them. Two classes implement it: `KernelConnection`, a kernel in a
// worker, and `ServerConnection`, a sandbox of `wasmsand serve`.

/** The answer to a request. */
export interface Answer<Result> {
  result: Result;
  data: Uint8Array;
}

/** An event of a started command, a terminal or a session. */
export interface KernelEvent {
  event: string;
  [field: string]: unknown;
}

export type Listener = (event: KernelEvent, data: Uint8Array) => void;

export interface Connection {
  request<Result>(
    method: string, params?: object, data?: Uint8Array | null,
  ): Promise<Answer<Result>>;
  /** Get the events of a handle, also those that have come already. */
  listen(handle: number, listener: Listener): void;
  unlisten(handle: number): void;
  /** End the sandbox. Everything that waits is rejected. */
  close(): void;
  readonly isClosed: boolean;
}
