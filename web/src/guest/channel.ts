// How a guest's worker and the kernel's worker talk: one shared array per guest, and one bell.
//
// Owns the layout. Rules: a guest writes its call, sets STATE to CALLING and rings the bell; the
// kernel writes the answer, sets STATE to ANSWERED and notifies. Numbers are 32-bit words; an
// answer has a second word that says what it means.

export const STATE = 0;
export const OPERATION = 1;
export const MEANING = 2;
export const RESULT = 3;
export const WORDS = 4;
/** Room for the arguments of the largest function of WASI. */
export const WORDS_MAX = 24;
export const CHANNEL_WORDS = WORDS + WORDS_MAX;

export const IDLE = 0, CALLING = 1, ANSWERED = 2;
/** The program has been left, and the worker can run another one. */
export const OVER = 3;

export const enum Operation {
  Syscall,
  Invoke,
  ForkAllowed,
  Fork,
  Returned,
  Trapped,
  TrappedAgain,
  Tick,
}

export const enum Meaning {
  Result,
  Leave,
  Handle,
}

/** What a guest's worker is told to run. */
export interface Start {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  entry: string;
  variables: [name: string, value: number][];
  /** The Asyncify buffer of a fork, or -1. */
  buffer: number;
  /** What the entry of a further thread gets, or -1. */
  argument: number;
  channel: SharedArrayBuffer;
  bell: SharedArrayBuffer;
  functions: FunctionOffer[];
}

/** A function that programs may import, beside the two of the Linux ABI. */
export interface FunctionOffer {
  module: string;
  name: string;
  parameters: string;
}
