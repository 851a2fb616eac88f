// Starting Pyodide and the kernel in it.
//
// Owns `startPython`. Rules: Pyodide starts from the stored memory if there is one that fits, else
// in the ordinary way; the caller learns which. The file system of Emscripten is not part of a
// stored memory, so it is filled after either start.

import type { AssetIndex, Layout } from "../assets/layout.js";
import { readAsset, readAssetNow, startPyodide } from "#platform/kernel";
import { mountImage } from "./asset-files.js";
import type { BootModule, Pyodide } from "./service.js";

export const IMAGE_PATH = "/image";
export const KERNEL_PATH = "/kernel.zip";

export interface Python {
  pyodide: Pyodide;
  boot: BootModule;
  fromSnapshot: boolean;
}

export async function startPython(
  index: AssetIndex, wantSnapshot: boolean, report: (error: unknown) => void,
): Promise<Python> {
  const [layout, kernel, snapshot] = await Promise.all([
    readAsset(index.layout), readAsset(index.kernel),
    wantSnapshot && index.snapshot ? readAsset(index.snapshot) : null,
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
  pyodide.FS.writeFile(KERNEL_PATH, kernel);
  const document = JSON.parse(new TextDecoder().decode(layout)) as Layout;
  mountImage(pyodide, IMAGE_PATH, document, readAssetNow, report);
  if (!fromSnapshot) pyodide.runPython(`import sys; sys.path.insert(0, '${KERNEL_PATH}')`);
  return { pyodide, boot: pyodide.pyimport("wasmsand.web.boot") as BootModule, fromSnapshot };
}
