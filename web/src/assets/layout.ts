// What the assets are: the files that scripts/make-assets.mjs writes.
//
// Owns their layout. Rules: every asset is a gzip file that is named by the SHA-256 of its content,
// `<sha256>.bin`. Only `index.json` has a fixed name. So an asset never changes, and can be kept
// for ever.

export const LAYOUT_FORMAT = 1;
export const INDEX_NAME = "index.json";

/** index.json: where everything begins. */
export interface AssetIndex {
  format: number;
  /** A JSON document: `Layout`. */
  layout: string;
  /** The same for the image of compiled packages, if there is one. */
  packages: string | null;
  /** The files of Pyodide, by name; only pyodide.mjs is a file of its own. */
  pyodide: Record<string, string>;
  pyodideVersion: string;
  /** Memory of Pyodide with the kernel imported, if there is one. */
  snapshot: string | null;
}

/** A file of the directory that Python sees: the image, kernel.zip and python_stdlib.zip. */
export type ImageFile = { name: string; size: number } & (
  | { asset: string }
  | { asset: string; beginningAt: number }
  | { pieceBytes: number; pieces: string[] }
);

export interface Layout {
  files: ImageFile[];
  /** Programs in the form in which they run (kernel/stored-form.ts), by the program's hash. */
  forms: Record<string, string>;
  /** The first bytes of each program, one after the other. */
  beginnings: string;
  /** How many bytes of each program are in `beginnings`; fewer if it is shorter. */
  beginningBytes: number;
}

export function assetName(hash: string): string {
  return `${hash}.bin`;
}
