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
  /** The sources of the kernel, a zip file. */
  kernel: string;
  /** The files of Pyodide that are not scripts, by name. */
  pyodide: Record<string, string>;
  pyodideVersion: string;
  /** Memory of Pyodide with the kernel imported, if there is one. */
  snapshot: string | null;
}

/** A file of the image directory that Python sees. */
export type ImageFile = { name: string; size: number } & (
  | { asset: string }
  | { asset: string; beginningAt: number }
  | { pieceBytes: number; pieces: string[] }
);

export interface Layout {
  files: ImageFile[];
  /** The first bytes of each program, one after the other. */
  beginnings: string;
  /** How many bytes of each program are in `beginnings`; fewer if it is shorter. */
  beginningBytes: number;
}

export function assetName(hash: string): string {
  return `${hash}.bin`;
}
