// Starting Pyodide and the kernel in it.
//
// Owns `startPython`. Rules: Pyodide starts from the stored memory if there is one that fits, else
// in the ordinary way; the caller learns which. The file system of Emscripten is not part of a
// stored memory, so it is filled after either start.

import type { AssetIndex, Layout } from "../assets/layout.js";
import { readAsset, readAssetNow, startPyodide } from "#platform/kernel";
import { mountImage, type ImageAccess } from "./asset-files.js";
import type { BootModule, Pyodide } from "./service.js";

export const IMAGE_PATH = "/image";
/** The sources of the kernel. A stored memory refers to this path. */
const KERNEL_PATH = "/kernel.zip";
const PACKAGES_PATH = "/packages";

export interface Python {
  layout: Layout;
  pyodide: Pyodide;
  boot: BootModule;
  fromSnapshot: boolean;
  /** The images that Python sees, by their directories. */
  images: Map<string, ImageAccess>;
  /** Show the image of compiled packages to Python: its directory, and where its programs are. */
  showPackages(): { path: string; forms: Layout["forms"] } | null;
}

export async function startPython(
  index: AssetIndex, wantSnapshot: boolean, report: (error: unknown) => void,
): Promise<Python> {
  const [layout, snapshot] = await Promise.all([
    readAsset(index.layout), wantSnapshot && index.snapshot ? readAsset(index.snapshot) : null,
  ]);
  let pyodide: Pyodide | undefined;
  if (snapshot) {
    try {
      pyodide = await startPyodide(index, snapshot);
    } catch (error) {
      report(error);
    }
  }
  const fromSnapshot = pyodide !== undefined;
  pyodide ??= await startPyodide(index, null);
  const document = JSON.parse(new TextDecoder().decode(layout)) as Layout;
  const images = new Map<string, ImageAccess>();
  const mount = (path: string, image: Layout) =>
    images.set(path, mountImage(pyodide, path, image, readAssetNow, readAsset, report));
  mount(IMAGE_PATH, document);
  pyodide.FS.symlink(`${IMAGE_PATH}/kernel.zip`, KERNEL_PATH);
  if (!fromSnapshot) pyodide.runPython(`import sys; sys.path.insert(0, '${KERNEL_PATH}')`);
  if (fromSnapshot) fetchLibraryLater(pyodide);
  return {
    layout: document,
    pyodide,
    boot: pyodide.pyimport("wasmsand.web.boot") as BootModule,
    fromSnapshot,
    showPackages: packagesShower(index, mount),
    images,
  };
}

/** Only few sandboxes want compiled packages, so even the list of their files is read late. */
function packagesShower(
  index: AssetIndex, mount: (path: string, image: Layout) => void,
): Python["showPackages"] {
  let forms: Layout["forms"] | undefined;
  return () => {
    if (!index.packages) return null;
    if (!forms) {
      const layout = JSON.parse(new TextDecoder().decode(readAssetNow(index.packages))) as Layout;
      mount(PACKAGES_PATH, layout);
      forms = layout.forms;
    }
    return { path: PACKAGES_PATH, forms };
  };
}

/** A stored memory has imported what it needs: the library is read only at a later import. */
function fetchLibraryLater(pyodide: Pyodide): void {
  const path = pyodide.runPython(
    "next(path for path in sys.path if path.endswith('.zip') and path.startswith('/lib/'))",
  ) as string;
  pyodide.FS.unlink(path);
  pyodide.FS.symlink(`${IMAGE_PATH}/python_stdlib.zip`, path);
}
