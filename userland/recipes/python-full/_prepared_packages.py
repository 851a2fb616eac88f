"""Packages that an interpreter has imported before its checkpoint; `_prepared` calls this.

Owns which modules belong to a package, whether a sandbox has installed it, and what importing it
changes outside of its modules. Rules: a package is installed if site-packages has the link to its
directory of the registry; only then its modules are handed out. What its import has added to lists
that all share (filters of warnings, finders, variables of the environment) is taken out at the
checkpoint, and added when the package is handed out.

The list `packages.txt` beside this file has a line for each package: its name, and the modules to
import. `NAME.py`, if there is one, defines `RENEW`: for modules by name, a function that is called
with the module when it is handed out, to replace what it learned from the environment when it was
imported.
"""

from __future__ import annotations

import importlib
import os
import site
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_REGISTRY = "/usr/lib/python"
_READ_BY_PACKAGES = ("NPY_", "NUMPY_", "PANDAS_", "SCIPY_", "SKLEARN_", "JOBLIB_")
"""Variables that packages look at when they are imported."""

_links: dict[str, tuple[str, str]] = {}
"""Modules at the top of packages: the link in site-packages, and where it must lead."""
_installed: set[str] = set()
"""Those that were found to be installed."""
_shared: set[str] = set()
"""Modules of no single package that came with them: what Cython's modules share."""
_changes: dict[str, _Changes] = {}
"""What importing a package has changed, by the first module of its list."""
_renew: dict[str, Callable[[ModuleType], None]] = {}


class _Changes:
    """What importing a package has added to what all modules share."""

    def __init__(self) -> None:
        self._filters = list(warnings.filters)
        self._finders = list(sys.meta_path)
        self._variables = dict(os.environ)
        self._added_filters: list[Any] = []
        self._added_finders: list[tuple[int, Any]] = []
        self._added_variables: dict[str, str] = {}

    def take_back(self) -> None:
        """The package is imported: note what it has added, and undo it."""
        self._added_filters = [item for item in warnings.filters if item not in self._filters]
        self._added_finders = [
            (index, item) for index, item in enumerate(sys.meta_path) if item not in self._finders
        ]
        self._added_variables = {
            name: value for name, value in os.environ.items() if name not in self._variables
        }
        warnings.filters[:] = self._filters  # type: ignore[index]  # it is a list
        sys.meta_path[:] = self._finders
        for name in self._added_variables:
            del os.environ[name]
        _filters_have_changed()
        del self._filters, self._finders, self._variables

    def make(self) -> None:
        """The package is handed out."""
        if self._added_filters:
            warnings.filters[:0] = self._added_filters  # type: ignore[index]
            _filters_have_changed()
        for index, finder in self._added_finders:
            sys.meta_path.insert(index, finder)
        for name, value in self._added_variables.items():
            os.environ.setdefault(name, value)


def _filters_have_changed() -> None:
    with warnings._lock:  # type: ignore[attr-defined]
        warnings._filters_mutated_lock_held()  # type: ignore[attr-defined]


def prepare(folder: str, brought: dict[str, set[str]]) -> None:
    """Import the packages of the list; add to `brought` which modules came with each."""
    with open(f"{folder}/packages.txt", encoding="utf-8") as stream:
        wanted = [line.split() for line in stream]
    for package, *_ in wanted:
        _link(package)
    importlib.invalidate_caches()
    for package, *modules in wanted:
        changes = _Changes()
        for module in modules:
            before = set(sys.modules)
            importlib.import_module(module)
            brought[module] = set(sys.modules) - before
            _shared.update(filter(_belongs_to_none, brought[module]))
            brought[module] |= _shared
        changes.take_back()
        if modules:
            _changes[modules[0]] = changes
        _read_renewals(f"{folder}/{package}.py")


def _link(package: str) -> None:
    """Install a package, as pip does."""
    target = site.getsitepackages()[0]
    for entry in os.listdir(f"{_REGISTRY}/{package}"):
        origin, link = f"{_REGISTRY}/{package}/{entry}", f"{target}/{entry}"
        if entry == "__pycache__":
            os.makedirs(link, exist_ok=True)
            for compiled in os.listdir(origin):
                os.symlink(f"{origin}/{compiled}", f"{link}/{compiled}")
            continue
        os.symlink(origin, link)
        if not entry.endswith(".dist-info"):
            _links[entry.removesuffix(".py")] = (link, origin)


def _read_renewals(path: str) -> None:
    try:
        with open(path, encoding="utf-8") as stream:
            source = stream.read()
    except FileNotFoundError:
        return
    scope: dict[str, Any] = {"__name__": "_prepared_packages"}
    exec(compile(source, path, "exec"), scope)
    _renew.update(scope["RENEW"])


def _belongs_to_none(name: str) -> bool:
    top = name.partition(".")[0]
    return top not in _links and top not in sys.stdlib_module_names


def owns(name: str) -> bool:
    """Whether a module came with a package."""
    return name.partition(".")[0] in _links or name in _shared


def folders() -> dict[str, set[str]]:
    """The directories of the registry, and the modules at the top of each."""
    found: dict[str, set[str]] = {}
    for top, (_, origin) in _links.items():
        found.setdefault(os.path.dirname(origin), set()).add(top)
    return found


def found_in_registry(top: str) -> None:
    """A directory of the registry is on the path: its packages need no link."""
    _installed.add(top)


def is_available(name: str) -> bool:
    """Whether a module may be handed out: it belongs to no package, or to an installed one."""
    top = name.partition(".")[0]
    if top in _installed or top not in _links:
        return True
    link, origin = _links[top]
    try:
        if os.readlink(link) != origin:
            return False
    except OSError:
        return False
    _installed.add(top)
    return True


def renew(name: str, module: ModuleType) -> None:
    """A module is handed out."""
    changes = _changes.pop(name, None)
    if changes is not None:
        changes.make()
    renewal = _renew.get(name)
    if renewal is not None:
        renewal(module)


def check_environment() -> None:
    """Packages that were imported without a variable of theirs cannot follow it any more: then the
    plain interpreter takes over."""
    for name in os.environ:
        if name.startswith(_READ_BY_PACKAGES):
            os.execv(f"{os.readlink('/proc/self/exe')}-plain", sys.orig_argv)
