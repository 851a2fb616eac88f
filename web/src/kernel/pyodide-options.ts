// How Pyodide is told to start from a stored memory.
//
// Owns the options. Rules: `_loadSnapshot` is private to Pyodide, so the version is pinned, and a
// start that fails is followed by an ordinary one. Pyodide copies the stored memory over its own,
// which has to be as large before: we make it grow. Python keeps the address of a function that only
// engines with WebAssembly's garbage collection have (Node 20 has not): the stored memory gets this
// engine's one.

interface PyodideModule {
  HEAP8: Int8Array;
  HEAP32: Int32Array;
  /** Python's state, and where the offset is kept at which its state has the function's address. */
  __PyRuntime: number;
  __PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET: number;
  _malloc(size: number): number;
}

export type CreateModule = (settings: object) => Promise<PyodideModule>;

/** Where a stored memory says how long its head is. */
const HEAD_LENGTH_AT = 4;

function prepared(create: CreateModule, snapshot: Uint8Array): CreateModule {
  const size = snapshot.length;
  return async (settings) => {
    const module = await create(settings);
    setTrampoline(module, snapshot);
    const lacking = size - module.HEAP8.length;
    // The stored memory replaces the allocator's state too, so this is not lost.
    if (lacking > 0 && module._malloc(size) === 0) throw new Error("no memory for Pyodide");
    return module;
  };
}

function setTrampoline(module: PyodideModule, snapshot: Uint8Array): void {
  const { HEAP32 } = module;
  const address = module.__PyRuntime + HEAP32[module.__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET / 4]!;
  const stored = new DataView(snapshot.buffer, snapshot.byteOffset, snapshot.byteLength);
  const head = stored.getUint32(HEAD_LENGTH_AT, true);
  stored.setInt32(head + address, HEAP32[address / 4]!, true);
}

/** Options for `loadPyodide`. */
export function pyodideOptions(create: CreateModule, snapshot: Uint8Array | null): object {
  const streams = {
    stdout: (line: string) => console.log(line),
    stderr: (line: string) => console.warn(line),
  };
  if (!snapshot) return { ...streams, createPyodideModule: create };
  return {
    ...streams,
    _loadSnapshot: snapshot,
    createPyodideModule: prepared(create, snapshot),
  };
}
