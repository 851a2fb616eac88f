// Saved sandboxes on Node: files in a directory.
//
// Rules: a file is written beside its place and then renamed.

import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface States {
  put(name: string, state: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | null>;
  delete(name: string): Promise<void>;
  list(): Promise<string[]>;
}

const NEW = "~new";

export async function openStates(place: string): Promise<States> {
  await mkdir(place, { recursive: true });
  let counter = 0;
  return {
    put: async (name, state) => {
      const made = join(place, `${name}${NEW}${process.pid}-${++counter}`);
      try {
        await writeFile(made, state);
        await rename(made, join(place, name));
      } finally {
        await rm(made, { force: true });
      }
    },
    get: async (name) => {
      try {
        return await readFile(join(place, name));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    delete: (name) => rm(join(place, name), { force: true }),
    list: async () => readdir(place),
  };
}
