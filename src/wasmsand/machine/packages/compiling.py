"""Compiles the modules of a wheel, so that no sandbox has to.

Rules: the sandbox's own Python compiles, in a sandbox of its own, so the host never parses code of
a package; if that fails, the modules that were compiled are used, and the others are compiled
whenever they are imported.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ROOT, SharedTree
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.files import SandboxFiles
from wasmsand.machine.packages.reading import REGISTRY
from wasmsand.machine.packages.registry import directory_of
from wasmsand.machine.packages.wheel_cache import CompiledFiles

_SECONDS: Final = 300.0
_PLACE: Final = "/home/user/compiled"
_SUFFIX: Final = ".cpython-314.pyc"
_PROGRAM: Final = f"""
import compileall, py_compile, sys
sys.pycache_prefix = {_PLACE!r}
compileall.compile_dir(
    sys.argv[1], quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
)
"""


def compile_in_sandbox(tree: SharedTree, name: str) -> CompiledFiles:
    """The compiled modules of a package."""
    # Imported here, because the machine imports packages when it needs them.
    from wasmsand.machine.machine import Machine, MachineOptions

    directory = directory_of(name)
    limits = Limits(fs_limit_bytes=1 << 30, max_inodes=100_000)
    machine = Machine(MachineOptions(limits))
    try:
        with machine.lock:
            namespace = machine.kernel.namespace
            try:
                namespace.mkdir(ROOT, namespace.root, REGISTRY, 0o755)
            except KernelError:
                pass  # the image has packages
            parent, last = namespace.resolve_parent(ROOT, namespace.root, directory)
            machine.kernel.root.attach(parent.ino, last, tree)
        argv = ("python3", "-c", _PROGRAM, directory.decode())
        machine.run(CommandRequest(argv, {"HOME": "/home/user"}, "/home/user", _SECONDS))
        return _collect(machine.files, directory.decode())
    except KernelError:
        return {}
    finally:
        machine.close()


def _collect(files: SandboxFiles, directory: str) -> CompiledFiles:
    """The compiled modules, with the paths that they have beside their sources."""
    found: CompiledFiles = {}
    top = _PLACE + directory
    for entry in files.tree(top):
        if entry.type == "file" and entry.name.endswith(_SUFFIX):
            folder = entry.path.removeprefix(top + "/").rpartition("/")[0]
            source = "/".join(filter(None, (directory, folder, entry.name)))
            if files.exists(source.removesuffix(_SUFFIX) + ".py"):
                path = "/".join(filter(None, (folder, "__pycache__", entry.name)))
                found[path] = files.read(entry.path)
    return found
