// Directories of the host that a sandbox may read.
//
// Owns opening files below a mounted directory (src/wasmsand/web/host.py says what Python asks).
// Rules: a path is a list of names; no name is empty, "." or ".." or contains a slash. Each directory
// is opened by its name in the one above it, without following a symbolic link: a descriptor stays at
// its directory, whatever is renamed meanwhile. Linux has paths for that, below /proc/self/fd. Only
// regular files are opened. Nothing is written.

import {
  closeSync, constants, existsSync, fstatSync, lstatSync, openSync, readdirSync, readlinkSync,
  readSync, type BigIntStats,
} from "node:fs";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
const BIG = { bigint: true } as const;

type Facts = string[];

/** A name in an open directory, as a path. */
function inside(directory: number, name: string): Buffer {
  if (name === "" || name === "." || name === ".." || /[\/\0]/.test(name)) throw failure("EINVAL");
  return Buffer.from(`/proc/self/fd/${directory}/${name}`, "latin1");
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "EIO";
}

function factsOf(found: BigIntStats, target: string): Facts {
  const { dev, ino, mode, nlink, uid, gid, size, blocks, atimeNs, mtimeNs, ctimeNs } = found;
  const numbers = [dev, ino, mode, nlink, uid, gid, size, blocks, atimeNs, mtimeNs, ctimeNs];
  return [...numbers.map(String), target];
}

/** The facts of a name in a directory; null if there is none. */
function lookAt(directory: number, name: string): Facts | null {
  const path = inside(directory, name);
  try {
    const found = lstatSync(path, BIG);
    const target = found.isSymbolicLink() ? readlinkSync(path, "buffer").toString("latin1") : "";
    return factsOf(found, target);
  } catch (error) {
    if (["ENOENT", "EINVAL"].includes(codeOf(error))) return null;
    throw error;
  }
}

/** Use the directory with this path below another one. */
function within<Result>(root: number, names: string[], use: (directory: number) => Result): Result {
  let at = root;
  try {
    for (const name of names) {
      const below = openSync(inside(at, name), DIRECTORY);
      if (at !== root) closeSync(at);
      at = below;
    }
    if (fstatSync(at, BIG).dev !== fstatSync(root, BIG).dev) throw failure("EXDEV");
    return use(at);
  } finally {
    if (at !== root) closeSync(at);
  }
}

function look(root: number, what: string, path: string[], wanted: string[]): unknown {
  if (what === "facts") {
    const name = path.at(-1);
    if (name === undefined) return factsOf(fstatSync(root, BIG), "");
    return within(root, path.slice(0, -1), (directory) => lookAt(directory, name));
  }
  return within(root, path, (directory) => {
    if (what === "names") return wanted.map((name) => lookAt(directory, name));
    const names = readdirSync(`/proc/self/fd/${directory}`, { encoding: "buffer" });
    return names.map((name) => [
      name.toString("latin1"), lookAt(directory, name.toString("latin1")),
    ]);
  });
}

function read(root: number, path: string[], inode: string, offset: number, size: number): Uint8Array {
  const name = path.at(-1);
  if (name === undefined) throw failure("EISDIR");
  return within(root, path.slice(0, -1), (directory) => {
    const place = inside(directory, name);
    if (!lstatSync(place).isFile()) throw failure("EACCES");
    const file = openSync(place, FILE);
    try {
      const found = fstatSync(file, BIG);
      if (!found.isFile() || String(found.ino) !== inode) throw failure("ESTALE");
      const bytes = new Uint8Array(size);
      return bytes.subarray(0, readSync(file, bytes, 0, size, offset));
    } finally {
      closeSync(file);
    }
  });
}

/** What Python may call. */
export const directories = {
  directory_open: (path: string): string => {
    if (!existsSync("/proc/self/fd")) return JSON.stringify({ error: "this needs Linux" });
    try {
      const handle = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
      const facts = factsOf(fstatSync(handle, BIG), "");
      return JSON.stringify({
        handle, facts, uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0,
      });
    } catch (error) {
      return JSON.stringify({ error: codeOf(error) });
    }
  },
  directory_look: (handle: number, what: string, path: string, names: string): string => {
    try {
      return JSON.stringify(look(handle, what, JSON.parse(path), JSON.parse(names)));
    } catch (error) {
      return JSON.stringify({ error: codeOf(error) });
    }
  },
  directory_read: (
    handle: number, path: string, inode: string, offset: number, size: number,
  ): Uint8Array | string => {
    try {
      return read(handle, JSON.parse(path), inode, offset, size);
    } catch (error) {
      return codeOf(error);
    }
  },
  directory_close: (handle: number): void => closeSync(handle),
};
