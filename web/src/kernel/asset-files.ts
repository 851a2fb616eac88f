// The image directory that Python sees, made of assets.
//
// Owns a read-only file system for Emscripten. Rules: bytes that were not fetched in advance are
// fetched when they are read, and Python waits. The kernel reads the first bytes of a program at each
// start, and these come with the layout; the whole program is fetched in the background when it is
// loaded. A few pieces of large files are kept; those that were fetched in advance, until they are
// read.

import type { ImageFile, Layout } from "../assets/layout.js";
import type { EmscriptenFs, EmscriptenNode, Pyodide } from "./service.js";

const DIRECTORY = 0o040555;
const FILE = 0o100444;
const ENOENT = 44, EROFS = 69, EIO = 29, EINVAL = 28; // Emscripten's numbers, which are WASI's
const PIECES_KEPT = 64;
/** Larger parts of files are read while Python waits. */
const PIECES_FETCHED = 256;

type ReadNow = (hash: string) => Uint8Array;

/** Forget the oldest entries, so that at most so many stay. */
function shrink(pieces: Map<string, Uint8Array>, most: number): void {
  for (const oldest of pieces.keys()) {
    if (pieces.size <= most) return;
    pieces.delete(oldest);
  }
}

/** The content of assets, newest use last. */
class Kept {
  private readonly pieces = new Map<string, Uint8Array>();
  /** What was fetched in advance and not read yet. */
  private readonly unread = new Map<string, Uint8Array>();

  constructor(private readonly read: ReadNow) {}

  has(hash: string): boolean {
    return this.pieces.has(hash) || this.unread.has(hash);
  }

  put(hash: string, bytes: Uint8Array): void {
    this.unread.set(hash, bytes);
    shrink(this.unread, 2 * PIECES_FETCHED);
  }

  get(hash: string): Uint8Array {
    const bytes = this.pieces.get(hash) ?? this.unread.get(hash) ?? this.read(hash);
    this.pieces.delete(hash);
    this.unread.delete(hash);
    this.pieces.set(hash, bytes);
    shrink(this.pieces, PIECES_KEPT);
    return bytes;
  }
}

/** Copies bytes of a file to `target`: how many. They may be fewer than there are: a reader with a
 *  large buffer asks for more than it needs, and gets the beginning of a program alone. */
export function readImageFile(
  file: ImageFile, position: number, target: Uint8Array, content: (hash: string) => Uint8Array,
  layout: Layout,
): number {
  const count = Math.max(0, Math.min(target.length, file.size - position));
  if (count === 0) return 0;
  if ("pieces" in file) {
    let done = 0;
    while (done < count) {
      const at = position + done;
      const number = Math.floor(at / file.pieceBytes);
      const inside = at - number * file.pieceBytes;
      const part = content(file.pieces[number]!).subarray(inside, inside + count - done);
      if (part.length === 0) throw new RangeError("a piece is too short");
      target.set(part, done);
      done += part.length;
    }
  } else if ("beginningAt" in file && position < layout.beginningBytes) {
    const known = Math.min(count, layout.beginningBytes - position);
    const start = file.beginningAt + position;
    target.set(content(layout.beginnings).subarray(start, start + known));
    return known;
  } else target.set(content(file.asset).subarray(position, position + count));
  return count;
}

/** What a mounted image can do while Python does not wait. */
export interface ImageAccess {
  /** Whether bytes of a file can be read without waiting. */
  has(name: string, position: number, count: number): boolean;
  /** Fetch them. */
  fetch(name: string, position: number, count: number): Promise<void>;
}

/** The assets of which a part of a file consists. */
function assetsOf(file: ImageFile | undefined, position: number, count: number): string[] {
  if (!file || !("pieces" in file) || count <= 0) return [];
  const first = Math.floor(position / file.pieceBytes);
  return file.pieces.slice(first, Math.floor((position + count - 1) / file.pieceBytes) + 1);
}

export function mountImage(
  python: Pyodide, path: string, layout: Layout, readNow: ReadNow,
  readLater: (hash: string) => Promise<Uint8Array>, report: (error: unknown) => void,
): ImageAccess {
  const fs = python.FS;
  const kept = new Kept(readNow);
  const beginnings = readNow(layout.beginnings);
  const content = (hash: string) => (hash === layout.beginnings ? beginnings : kept.get(hash));
  const files = new Map(layout.files.map((file) => [file.name, file]));
  const read = (file: ImageFile, position: number, target: Uint8Array) => {
    try {
      return readImageFile(file, position, target, content, layout);
    } catch (error) {
      report(error);
      throw new fs.ErrnoError(EIO);
    }
  };
  fs.mkdirTree(path);
  fs.mount(imageFs(fs, files, read), {}, path);
  return {
    has: (name, position, count) => {
      const assets = assetsOf(files.get(name), position, count);
      return assets.length > PIECES_FETCHED || assets.every((hash) => kept.has(hash));
    },
    fetch: async (name, position, count) => {
      const missing = assetsOf(files.get(name), position, count).filter((hash) => !kept.has(hash));
      const fetched = await Promise.all(missing.map(readLater));
      fetched.forEach((bytes, index) => kept.put(missing[index]!, bytes));
    },
  };
}

function imageFs(
  fs: EmscriptenFs, files: Map<string, ImageFile>,
  read: (file: ImageFile, position: number, target: Uint8Array) => number,
): object {
  const refuse = () => {
    throw new fs.ErrnoError(EROFS);
  };
  const time = new Date(0);
  const nodeOps = {
    getattr: (node: EmscriptenNode) => ({
      dev: 1, ino: node.id, mode: node.mode, nlink: 1, uid: 0, gid: 0, rdev: 0,
      size: node.image ? node.image.size : 0,
      atime: time, mtime: time, ctime: time, blksize: 4096, blocks: 0,
    }),
    lookup: (parent: EmscriptenNode, name: string) => {
      const image = parent.image ? undefined : files.get(name);
      if (!image) throw new fs.ErrnoError(ENOENT);
      return node(parent, name, FILE, image);
    },
    readdir: () => [".", "..", ...files.keys()],
    setattr: refuse, mknod: refuse, rename: refuse, unlink: refuse, rmdir: refuse, symlink: refuse,
  };
  const streamOps = {
    read: (
      stream: EmscriptenNode, buffer: Int8Array, offset: number, length: number, position: number,
    ) =>
      read(
        stream.node.image, position, new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length),
      ),
    llseek: (stream: EmscriptenNode, offset: number, whence: number) => {
      const bases = [0, stream.position, stream.node.image?.size ?? 0];
      const position = (bases[whence] ?? NaN) + offset;
      if (!(position >= 0)) throw new fs.ErrnoError(EINVAL);
      return position;
    },
    write: refuse,
  };
  function node(
    parent: EmscriptenNode, name: string, mode: number, image?: ImageFile,
  ): EmscriptenNode {
    const made = fs.createNode(parent, name, mode, 0);
    made.node_ops = nodeOps;
    made.stream_ops = streamOps;
    made.image = image;
    return made;
  }
  return { mount: () => node(null, "/", DIRECTORY) };
}
