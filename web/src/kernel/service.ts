// What Python offers to this side (src/wasmsand/web/service.py).
//
// Owns the shape of `Service` and of Pyodide, as far as we use them. Rules: only numbers, strings
// and buffers cross.

/** A buffer of Python. */
export interface PythonBuffer {
  getBuffer(type: "u8"): { data: Uint8Array; release(): void };
}

export interface Service {
  call(
    guest: number, nr: number, a: number, b: number, c: number, d: number, e: number, f: number,
  ): number;
  other(guest: number, what: string, ...values: unknown[]): number;
  module_fetched(key: string, form: unknown): void;
  memory_fetched(key: string, image: number): void;
  bytes_came(key: string): void;
  fetch_failed(key: string, problem: string): void;
  authority_made(certificate: string): void;
  heard(number: number, event: string, text: string, data: Uint8Array | undefined): void;
  may_use(number: number, address: string): boolean;
  taken(handle: number, count: number): void;
  time_passed(): void;
  tick(): void;
  request(number: number, method: string, params: string, data: Uint8Array | undefined): void;
}

/** The module wasmsand.web.boot. */
export interface BootModule {
  transfer: PythonBuffer;
  boot(host: object, image: string): Service;
}

/** A node, stream or mount of Emscripten's file system; asset-files.ts says which fields it uses. */
export type EmscriptenNode = any;

export interface EmscriptenFs {
  mkdirTree(path: string): void;
  mount(type: object, options: object, path: string): void;
  symlink(target: string, path: string): void;
  unlink(path: string): void;
  createNode(parent: EmscriptenNode, name: string, mode: number, device: number): EmscriptenNode;
  ErrnoError: new (errno: number) => Error;
}

export interface Pyodide {
  FS: EmscriptenFs;
  _module: { HEAPU8: Uint8Array };
  pyimport(name: string): unknown;
  runPython(code: string): unknown;
  makeMemorySnapshot(): Uint8Array;
}

/** A copy of bytes of Python. */
export function copyOf(data: PythonBuffer | null | undefined): Uint8Array<ArrayBuffer> | null {
  if (data === null || data === undefined) return null;
  const buffer = data.getBuffer("u8");
  try {
    return buffer.data.slice() as Uint8Array<ArrayBuffer>;
  } finally {
    buffer.release();
  }
}
