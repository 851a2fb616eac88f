// Saved sandboxes in a browser: files in the origin private file system.
//
// Rules: a writable stream replaces the file only when it is closed. A page that ends before leaves
// an empty file at the first time, which counts as none. If the browser denies storage, the error
// says so.

import { HostError, SandboxError } from "../../errors.js";

export interface States {
  put(name: string, state: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | null>;
  delete(name: string): Promise<void>;
  list(): Promise<string[]>;
}

function isMissing(error: unknown): boolean {
  return error instanceof DOMException && error.name === "NotFoundError";
}

function full(error: unknown): never {
  if (error instanceof DOMException && error.name === "QuotaExceededError") {
    throw new SandboxError("the browser's storage is full: delete states, or save less", "ENOSPC");
  }
  throw error;
}

async function directoryOf(place: string): Promise<FileSystemDirectoryHandle> {
  try {
    const root = await navigator.storage.getDirectory();
    return await root.getDirectoryHandle(place, { create: true });
  } catch (error) {
    throw new HostError(
      `the browser denies storage (${String(error)}), so that nothing can be kept: allow this site to ` +
        "store data, and leave private browsing",
      "EACCES",
    );
  }
}

export async function openStates(place: string): Promise<States> {
  const directory = await directoryOf(place);
  return {
    put: async (name, state) => {
      try {
        const handle = await directory.getFileHandle(name, { create: true });
        const stream = await handle.createWritable();
        await stream.write(state as BufferSource);
        await stream.close();
      } catch (error) {
        full(error);
      }
    },
    get: async (name) => {
      try {
        const file = await (await directory.getFileHandle(name)).getFile();
        return file.size === 0 ? null : new Uint8Array(await file.arrayBuffer());
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    },
    delete: async (name) => {
      await directory.removeEntry(name).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
    },
    list: async () => {
      const names: string[] = [];
      for await (const [name, handle] of directory.entries()) {
        if (handle.kind !== "file") continue;
        if ((await (handle as FileSystemFileHandle).getFile()).size > 0) names.push(name);
      }
      return names;
    },
  };
}
