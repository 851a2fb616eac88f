// The kernel as Pyodide sees it: an archive of its sources, and a memory in which it is imported.
//
// Rules: which sources are needed is found by importing the kernel in Pyodide. All modules of these
// packages are taken, because some are imported later. The archive has no times, so that the same
// sources make the same archive.

import { loadPyodide } from "pyodide";

const ARCHIVE = `
import importlib, io, os, sys, zipfile
sys.path.insert(0, "/src")
importlib.import_module("wasmsand.web.boot")
folders = {
    os.path.dirname(module.__file__)
    for name, module in sys.modules.items()
    if name.split(".")[0] == "wasmsand" and getattr(module, "__file__", None)
}
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as archive:
    for folder in sorted(folders):
        for name in sorted(os.listdir(folder)):
            if name.endswith((".py", ".json")):
                path = os.path.join(folder, name)
                info = zipfile.ZipInfo(path.removeprefix("/src/"))
                with open(path, "rb") as source:
                    archive.writestr(info, source.read())
out.getvalue()
`;

/** A zip file with the sources of the kernel. It is not compressed: assets are. */
export async function kernelArchive(source) {
  const python = await loadPyodide();
  python.mountNodeFS("/src", source);
  const made = python.runPython(ARCHIVE);
  const bytes = made.toJs();
  made.destroy();
  return Buffer.from(bytes);
}

/** The memory of a Pyodide that has imported the kernel and read the image's manifest. */
export async function kernelSnapshot(archive, image) {
  const python = await loadPyodide({ _makeSnapshot: true });
  python.FS.writeFile("/kernel.zip", archive);
  python.mountNodeFS("/image", image);
  python.runPython(`
import sys, gc
sys.path.insert(0, "/kernel.zip")
import wasmsand.web.boot
wasmsand.web.boot.prepare("/image")
gc.collect()
`);
  python.FS.unmount("/image");
  return Buffer.from(python.makeMemorySnapshot());
}
