// A request of a guest, and its answer, as both platforms know them.
//
// Owns their shapes. Rules: an answer is read piece by piece; an error while reading rejects.

export interface OutsideRequest {
  method: string;
  url: string;
  headers: [string, string][];
  body: Uint8Array<ArrayBuffer>;
  /** Address and port to connect to instead of those in the URL; null if there are none. */
  place: { address: string; port: number } | null;
  signal: AbortSignal;
  /** Whether the host may connect to this address, if it can know it. */
  mayUse(address: string): boolean;
}

export interface OutsideAnswer {
  status: number;
  reason: string;
  headers: [string, string][];
  /** The next piece of the body; null at its end. */
  read(): Promise<Uint8Array | null>;
}
