"""The compiled form of the kernel, if there is one.

Owns the list of modules that mypyc compiles, and the import hook that takes them from one shared
library. Rules: all of them are compiled or none is. The library is used only if it was made from
exactly these sources (an index beside it has their hashes) and for this Python; otherwise the
sources run, as they do in a browser. `WASMSAND_COMPILED_KERNEL=never` turns it off; `always` makes
it an error if it cannot be used. The library is looked for when the first of these modules is
imported. None of them is imported by `from wasmsand import Sandbox`.

`scripts/compile_kernel.py` makes the library; decision 0042 has the reasons.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE: Final = "WASMSAND_COMPILED_KERNEL"
DIRECTORY: Final = "_compiled"
"""Where a source checkout has the library, in the directory of the package."""
NATIVE_PACKAGE: Final = "wasmsand_native"
"""The package of the wheel with compiled code."""
NATIVE_DIRECTORY: Final = "kernel"
"""Where that package has the library."""
LIBRARY: Final = "wasmsand__mypyc"
"""mypyc derives this name, of a Python module, from the name of the group of modules."""
STARTER: Final = "wasmsand_start"
"""A second Python module in the library. It has a function that initialises a compiled module."""
INDEX_SUFFIX: Final = ".index"
INDEX_FORMAT: Final = "compiled kernel of wasmsand, format 1"
PACKAGES: Final = ("abi", "kernel")
"""Packages of wasmsand whose modules are compiled."""
MODULES: Final = frozenset(
    {
        "engine.asyncify",
        "engine.placement",
        "engine.wasmtime.hostcalls",
        "engine.wasmtime.traps",
        "machine.charging",
        "machine.dispatcher",
        "machine.driver",
        "machine.guest",
        "machine.lock",
        "machine.module_source",
        "machine.mounts.asking",  # has a class that derives from one of the kernel
        "machine.parking",
        "machine.program_start",
        "machine.thread_driver",
        "machine.thread_locals",
        "machine.turns",
    }
)
"""Further modules that are compiled."""
LEFT_OUT: Final = frozenset(
    {
        "abi.wasi.errno",  # mypyc cannot translate its enumeration
        "kernel.errno",  # layers above derive exceptions from its class; imported by the SDK
        "kernel.limits",  # imported by the SDK
    }
)
"""Modules of `PACKAGES` that stay as they are."""

SUFFIX: Final = EXTENSION_SUFFIXES[0] if EXTENSION_SUFFIXES else ".none"
"""The end of the library's name, which names the Python that can load it."""


class CompiledKernel:
    """An import hook: finds the compiled modules, if all of them can be used."""

    def __init__(self, package: str, version: str, wanted: str | None) -> None:
        """`package` is the directory of the package, `wanted` the value of the variable."""
        self._package = package
        self._version = version
        self._required = wanted == "always"
        self._lock = allocate_lock()
        # Guarded by the lock, and never changed once the decision is made:
        self._decided = wanted == "never"
        self._modules: frozenset[str] = frozenset()
        self._library: ModuleType | None = None
        self._start: Any = None
        self._why = f"{VARIABLE}=never" if self._decided else "no compiled form is installed"
        self._place = ""

    @property
    def form(self) -> str:
        """Which form is in use, and why, for people."""
        self._decide()
        if self._library is not None:
            return f"compiled ({self._place})"
        return f"Python sources ({self._why})"

    @property
    def is_used(self) -> bool:
        """Whether the compiled form is in use."""
        self._decide()
        return self._library is not None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by every import statement for a module that is not loaded yet."""
        if not name.startswith("wasmsand."):
            return None
        if not is_compiled(name[len("wasmsand.") :]):
            return None
        self._decide()
        if name not in self._modules:
            return None
        return ModuleSpec(name, self, origin=self._place)  # type: ignore[arg-type]  # it is a loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Initialise a compiled module: this runs its top level."""
        init = getattr(self._library, "init_" + spec.name.replace(".", "___"))
        module: ModuleType = self._start(init)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""

    def _decide(self) -> None:
        """Choose the form, once."""
        if self._decided:
            return
        with self._lock:
            if self._decided:
                return
            for place in self._places():
                index = os.path.join(place, LIBRARY + SUFFIX + INDEX_SUFFIX)
                try:
                    with open(index, encoding="utf-8") as stream:
                        lines = stream.read().splitlines()
                except FileNotFoundError:
                    continue
                except (OSError, ValueError) as error:
                    self._why = f"{index}: {error}"
                    continue
                if self._try(place, lines):
                    break
            if self._library is None and self._required:
                raise ImportError(f"{VARIABLE}=always: {self._why}")
            self._decided = True

    def _places(self) -> list[str]:
        """The directories that may have a library for this installation."""
        places = [os.path.join(self._package, DIRECTORY)]
        found = PathFinder.find_spec(NATIVE_PACKAGE)
        if found is not None and found.submodule_search_locations is not None:
            roots = found.submodule_search_locations
            places += [os.path.join(root, NATIVE_DIRECTORY) for root in roots]
        return places

    def _try(self, place: str, lines: list[str]) -> bool:
        """Use the library in `place` if it belongs to these sources."""
        path = os.path.join(place, LIBRARY + SUFFIX)
        try:
            modules = self._checked(lines)
        except (_Unusable, OSError, ValueError) as error:
            self._why = f"{path} is not used: {error}"
            return False
        try:
            library = _load(LIBRARY, path)
            start = _load(STARTER, path).start
        except (ImportError, OSError, AttributeError) as error:
            self._why = f"{path} cannot be loaded: {error}"
            return False
        self._library, self._start, self._place = library, start, path
        self._modules = modules
        return True

    def _checked(self, lines: list[str]) -> frozenset[str]:
        """The names of the compiled modules, if the sources are those of the index."""
        if lines[:2] != [INDEX_FORMAT, f"version {self._version}"]:
            raise _Unusable("it was made for another version of wasmsand")
        modules = []
        for line in lines[2:]:
            kind, expected, name = line.split(" ")
            source = os.path.join(self._package, *name.split(".")[1:]) + ".py"
            with open(source, "rb", buffering=0) as stream:
                content = stream.read()
            if hash_of(content) != expected:
                raise _Unusable(f"{source} has changed since")
            if kind == "compiled":
                modules.append(name)
        return frozenset(modules)


class _Unusable(Exception):
    """The library does not belong to the sources."""


def hash_of(source: bytes) -> str:
    """The hash of a source file. It finds accidents, and need not withstand attackers: whoever can
    write the index can also write the library."""
    from importlib.util import source_hash  # not for an import of `Sandbox`

    return source_hash(source).hex()


def is_compiled(name: str) -> bool:
    """Whether the module belongs to the compiled ones, or is a package with such modules; `name` is
    relative to the package."""
    if name in MODULES:
        return True
    package, dot, _ = name.partition(".")
    return bool(dot) and package in PACKAGES and name not in LEFT_OUT


def _load(name: str, path: str) -> ModuleType:
    """Load an extension module by the name of its initialisation function."""
    loader = ExtensionFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    module = loader.create_module(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def install(package: str, version: str) -> None:
    """Let imports find the compiled modules from now on."""
    sys.meta_path.insert(0, CompiledKernel(package, version, os.environ.get(VARIABLE)))


def chosen() -> CompiledKernel:
    """What decides for this process."""
    return next(finder for finder in sys.meta_path if isinstance(finder, CompiledKernel))
