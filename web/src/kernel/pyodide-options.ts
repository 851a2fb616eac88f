// How Pyodide is told to start from a stored memory.
//
// Owns the options. Rules: `_loadSnapshot` is private to Pyodide, so the version is pinned, and a
// start that fails is followed by an ordinary one. Pyodide copies the stored memory over its own,
// which has to be as large before: we make it grow.

interface PyodideModule {
  HEAP8: Int8Array;
  _malloc(size: number): number;
}

export type CreateModule = (settings: object) => Promise<PyodideModule>;

function growing(create: CreateModule, size: number): CreateModule {
  return async (settings) => {
    const module = await create(settings);
    const lacking = size - module.HEAP8.length;
    // The stored memory replaces the allocator's state too, so this is not lost.
    if (lacking > 0 && module._malloc(size) === 0) throw new Error("no memory for Pyodide");
    return module;
  };
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
    createPyodideModule: growing(create, snapshot.length),
  };
}
