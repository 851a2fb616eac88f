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
folders.add("/src/wasmsand/sdk/python_guest")  # read as text for Python sessions
# Imported when a program uses the network.
folders |= {"/src/wasmsand/web/network", "/src/wasmsand/machine/network/inspecting", "/libraries/h11"}
# Imported when a sandbox has packages.
folders |= {"/src/wasmsand/machine/packages", "/libraries/packaging"}
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as archive:
    for folder in sorted(folders):
        for name in sorted(os.listdir(folder)):
            if name.endswith((".py", ".json")):
                path = os.path.join(folder, name)
                info = zipfile.ZipInfo(path.removeprefix("/src/").removeprefix("/libraries/"))
                with open(path, "rb") as source:
                    archive.writestr(info, source.read())
out.getvalue()
`;

// What takes long and leaves much free memory behind comes first, so that the rest uses that memory.
// At the end, small objects of zeros overwrite what is free in Python's own arenas.
const PREPARE = `
import gc, sys
sys.path.insert(0, "/kernel.zip")
from wasmsand.sdk import python_session, python_source
python_source.driver_command(python_session.REQUESTS_FD, python_session.ANSWERS_FD)
gc.collect()
import wasmsand.web.boot
gc.collect()
wasmsand.web.boot.prepare("/image")
gc.collect()
for size in range(32, 513, 16):
    zeros = [bytes(size - 17) for _ in range((1 << 21) // size)]
    del zeros
gc.collect()
`;

/** A zip file with the sources of the kernel, and of the libraries h11 and packaging, which are in the
 *  directory `packages`. It is not compressed: assets are. */
export async function kernelArchive(source, packages) {
  const python = await loadPyodide();
  python.mountNodeFS("/libraries", packages);
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
  python.runPython(PREPARE);
  python.FS.unmount("/image");
  clearFreeMemory(python._module);
  return Buffer.from(python.makeMemorySnapshot());
}

/** Write zeros to free memory, which compress well. */
function clearFreeMemory(module) {
  const size = module.HEAPU8.length;
  const places = [];
  for (const piece of [1 << 20, 1 << 16, 1 << 12, 1 << 9]) {
    for (;;) {
      const place = module._malloc(piece);
      if (module.HEAPU8.length !== size) {
        module._free(place);
        break;
      }
      module.HEAPU8.fill(0, place, place + piece);
      places.push(place);
    }
  }
  for (const place of places) module._free(place);
}
