"""The registry: the Python packages of the image, ready to be installed.

Owns `Registry`, which reads the directories below /usr/lib/python in the image's tree, and the
names under which users know packages. Rules: there is no other index; a package's metadata is read
when it is first asked for, once in a host process; a registry never changes.
"""

from __future__ import annotations

import difflib
import threading
from typing import Final

from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import FrozenTree, Namespace, TreeFs
from wasmsand.machine.packages.metadata import PackageMetadata, normalised
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.reading import (
    DIST_INFO,
    REGISTRY,
    STANDARD_LIBRARY,
    names_in,
    read_package,
)

ALIASES: Final = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "mpl": "matplotlib",
    "pil": "pillow",
    "pptx": "python-pptx",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Names that people use for packages, in normalised form, and the packages' own names."""
NATIVE: Final = frozenset({
    "contourpy", "kiwisolver", "lxml", "matplotlib", "numpy", "pandas", "pillow", "pyyaml", "regex",
    "scikit-learn", "scipy",
})  # fmt: skip
"""The packages of the build stage "packages": they exist, but a host may not have them. A test
compares this with the recipes."""
PROVIDED: Final = frozenset({"tzdata"})
"""Packages whose data the image has in another form (/usr/share/zoneinfo), so that a dependency on
them is satisfied."""
_BUILT_IN_MODULES: Final = frozenset({
    "array", "atexit", "binascii", "builtins", "cmath", "errno", "faulthandler", "fcntl", "gc",
    "grp", "itertools", "marshal", "math", "mmap", "posix", "pwd", "pyexpat", "readline",
    "resource", "select", "sys", "syslog", "termios", "time", "unicodedata", "zlib",
})  # fmt: skip
"""Modules of the standard library that are part of the interpreter and have no file."""
_CLOSEST: Final = 3
_NAMED_MAX: Final = 100


class Registry:
    """The packages of one image. Thread-safe."""

    def __init__(self, tree: FrozenTree) -> None:
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._namespace = Namespace(TreeFs(tree, Limits()))
        self._known: dict[str, PackageMetadata | None] = {}
        listed = names_in(self._namespace, REGISTRY)
        self.names = tuple(sorted(name.decode("utf-8", "replace") for name in listed))
        """The normalised names of all packages."""
        self._standard = frozenset(
            name.decode("utf-8", "replace").removesuffix(".py")
            for name in names_in(self._namespace, STANDARD_LIBRARY)
        )
        self._by_module: dict[str, str] | None = None

    def get(self, name: str) -> PackageMetadata | None:
        """The package with this normalised name, or None."""
        if name not in self.names:
            return None
        with self._lock:
            if name not in self._known:
                self._known[name] = read_package(self._namespace, directory_of(name))
            return self._known[name]

    def all(self) -> list[PackageMetadata]:
        """All packages, sorted by name."""
        return [package for name in self.names if (package := self.get(name)) is not None]

    def known_as(self, name: str) -> str:
        """The normalised name of the package that a user calls `name`: its own name, an alias,
        or the name of a module in it. The result may be unknown."""
        key = normalised(name)
        if key in self.names:
            return key
        if key in ALIASES:
            return ALIASES[key]
        return self._modules().get(name, key)

    def has_module(self, name: str) -> bool:
        """Whether the standard library has this module, so that nothing has to be installed."""
        if name.startswith("_") or name in ("site-packages", "lib-dynload"):
            return False
        return name in _BUILT_IN_MODULES or name in self._standard

    def _modules(self) -> dict[str, str]:
        """The package of each top-level module."""
        with self._lock:
            if self._by_module is None:
                found: dict[str, str] = {}
                for package in self.names:
                    for entry in names_in(self._namespace, directory_of(package)):
                        if not entry.endswith(DIST_INFO) and entry != b"__pycache__":
                            module = entry.decode("utf-8", "replace").removesuffix(".py")
                            found.setdefault(module, package)
                self._by_module = found
            return self._by_module

    def missing(self, name: str, *, wanted_by: str = "", advice: str = "") -> PackageProblem:
        """The problem that there is no package `name`."""
        key = normalised(name)
        by = f", which {wanted_by} needs," if wanted_by else ""
        if key in NATIVE:
            return PackageProblem(
                PackageFault.NOT_BUILT,
                key,
                f"the package {key!r}{by} has native code, and this host does not have it: run "
                "`pip install wasmsand-packages`, or `make packages` in a source checkout",
            )
        candidates = {normalised(word): word for word in (*self.names, *ALIASES, *NATIVE)}
        close = difflib.get_close_matches(key, candidates, _CLOSEST, cutoff=0.6)
        closest = [
            word for word in dict.fromkeys(ALIASES.get(word, word) for word in close) if word != key
        ]
        guess = f"; did you mean {' or '.join(map(repr, closest))}? " if closest else ". "
        shown = ", ".join(self.names[:_NAMED_MAX]) or "none"
        if len(self.names) > _NAMED_MAX:
            shown += ", ..."
        return PackageProblem(
            PackageFault.NOT_FOUND,
            key,
            f"there is no package {name!r}{by} in the image{guess}"
            f"Available packages: {shown}.{advice}",
        )


def directory_of(name: str) -> bytes:
    """The directory of a package with this normalised name."""
    return REGISTRY + b"/" + name.encode()
