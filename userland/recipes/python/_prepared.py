"""The Python part of starting from a checkpoint; main.c calls it.

`prepare` runs once, when the image is made: it imports much of the standard library and puts
it aside. `resume` runs at every start, and does what depends on the environment.

A module that was put aside is not in `sys.modules`: programs see the modules that any fresh
interpreter has, and a file `random.py` beside a script hides the library's, as always. The
finder of the library's directories hands it out when an import gets there, together with what
it had imported itself. Modules in C and frozen ones are found before any directory is, so
they stay where they are.

An interpreter that has the native code of packages prepares these too: `_prepared_packages`, which
is in a directory beside its program, says which, and whether a sandbox has installed them.
"""

from __future__ import annotations

import builtins
import gc
import os
import site
import sys
import time
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType, ModuleType
    from typing import Any

_IMPORTED = """
    abc argparse array ast asyncio base64 bisect calendar cmath collections collections.abc
    concurrent.futures configparser contextlib contextvars copy csv ctypes dataclasses datetime
    decimal difflib email.message email.utils enum errno fnmatch fractions functools gettext glob
    graphlib gzip hashlib heapq hmac html html.parser http http.client importlib.metadata
    importlib.resources importlib.util inspect io ipaddress itertools json keyword linecache
    locale logging lzma bz2 math mimetypes numbers operator os.path pathlib pickle pkgutil
    platform pprint queue random re runpy secrets select selectors shlex shutil signal socket
    sqlite3 stat statistics string struct subprocess tarfile tempfile textwrap threading time
    timeit token tokenize traceback types typing unicodedata unittest urllib.error urllib.parse
    urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo _strptime
"""

_REGISTRY = "/usr/lib/python"
"""Packages that can be installed."""
_PACKAGE_NAMES = {
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "mpl_toolkits": "matplotlib",
    "pylab": "matplotlib",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages whose modules have other names."""
_KEY_BYTES = 32

_ALWAYS_IMPORTED = {"linecache"}
"""By the interpreter itself, when it runs a command."""

_packages: Any = None
"""The module `_prepared_packages`, if the interpreter has packages."""
names: set[str] = set()
"""Every module that was there at the checkpoint."""
_stored: dict[str, ModuleType] = {}
"""Modules put aside, by name."""
_needs: dict[str, tuple[str, ...]] = {}
"""Which modules each of them has imported, directly or not."""
_search_path: list[str] = []
"""The directories of `sys.path` but for those that `site` adds."""
_site_directories: dict[str, int | None] = {}
"""Those, and when they changed."""


def prepare() -> None:
    """Import the library and the packages, put them aside, and tidy up."""
    usual = {*sys.modules, *_ALWAYS_IMPORTED}
    imports: dict[str, set[str]] = {}
    brought: dict[str, set[str]] = {}
    _record(imports, lambda: _import_all(brought))
    for name, module in sys.modules.items():
        if _is_of_package(name) and not _is_put_aside(module):
            imports.setdefault(name, set()).update(_references(module))
    found = {
        name: module
        for name, module in sys.modules.items()
        if name not in usual and (_is_of_package(name) or _is_put_aside(module))
    }
    for name in found:
        needed = _closure(name, imports) | brought.get(name, set())
        _needs[name] = tuple(sorted(needed - {name}))
    for name, module in found.items():
        del sys.modules[name]
        _stored[name] = module
    for name in found:
        parent, _, child = name.rpartition(".")
        owner = _stored.get(parent) or sys.modules.get(parent)
        if owner is not None and name not in _needs.get(parent, ()):
            owner.__dict__.pop(child, None)
    del sys.modules[__name__], sys.modules["__main__"]
    sys.modules.pop("__mp_main__", None)
    names.update(sys.modules, _stored)
    for path, finder in list(sys.path_importer_cache.items()):
        if type(finder) is FileFinder:
            if path in (*site.getsitepackages(), os.path.dirname(os.__file__)):
                # The image, and whoever installs packages, put others there.
                finder.invalidate_caches()
            sys.path_importer_cache[path] = _LibraryFinder(finder)
    if _packages is not None:
        hook = next(hook for hook in sys.path_hooks if hook.__name__ == "path_hook_for_FileFinder")
        for path, tops in _packages.folders().items():
            sys.path_importer_cache[path] = _RegistryFinder(hook(path), tops)  # type: ignore[arg-type]
    _site_directories.update((path, _changed(path)) for path in site.getsitepackages())
    _search_path[:] = [path for path in sys.path if path not in _site_directories]
    site.USER_BASE = site.USER_SITE = None
    _hint_at_packages()
    gc.collect()


def _import_all(brought: dict[str, set[str]]) -> None:
    for name in _IMPORTED.split():
        try:
            __import__(name)
        except ImportError:
            pass  # not in this build
    _prepare_packages(brought)


def _prepare_packages(brought: dict[str, set[str]]) -> None:
    global _packages
    folder = f"{os.readlink('/proc/self/exe').removesuffix('-plain')}.d"
    if os.path.isdir(folder):
        sys.path.insert(0, folder)
        import _prepared_packages

        sys.path.remove(folder)
        del sys.modules["_prepared_packages"], sys.path_importer_cache[folder]
        _packages = _prepared_packages
        _packages.prepare(folder, brought)


def _is_of_package(name: str) -> bool:
    return _packages is not None and _packages.owns(name)


def _is_available(name: str) -> bool:
    """Whether a module that was put aside may be handed out: it belongs to the library, or the
    sandbox has installed its package."""
    return _packages is None or _packages.is_available(name)


def _references(module: ModuleType) -> set[str]:
    """The modules that a module in C has got something from: its imports are not recorded.

    Of a package that it knows, it may have imported any module: `import importlib.resources` leaves
    only `importlib`. Packages with `__getattr__` import their modules when asked, as numpy does.
    """
    found: set[str] = set()
    own = f"{module.__name__.partition('.')[0]}."
    for value in list(vars(module).values()):
        if (
            type(value) is type(sys)
            and hasattr(value, "__path__")
            and "__getattr__" not in vars(value)
        ):
            inside = f"{value.__name__}."
            if not inside.startswith(own):
                found.update(name for name in sys.modules if name.startswith(inside))
        owner = value.__name__ if type(value) is type(sys) else getattr(value, "__module__", None)
        if isinstance(owner, str) and owner in sys.modules:
            parts = owner.split(".")
            found.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return found


def _is_put_aside(module: ModuleType) -> bool:
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    return type(loader) is SourceFileLoader


def _record(edges: dict[str, set[str]], action: Callable[[], None]) -> None:
    """Record which module imports which, while it is executed."""
    real_import = builtins.__import__

    def recording(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        result = real_import(name, globals, locals, fromlist, level)
        module = _executed_module(sys._getframe(1))
        if module is not None:
            full = name
            if level and globals is not None:
                package = str(globals.get("__package__") or "")
                base = package.rsplit(".", level - 1)[0] if level > 1 else package
                full = f"{base}.{name}" if name else base
            imported = edges.setdefault(module, set())
            parts = full.split(".")
            imported.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
            imported.update(f"{full}.{item}" for item in fromlist or ())
        return result

    builtins.__import__ = recording
    try:
        action()
    finally:
        builtins.__import__ = real_import


def _executed_module(frame: FrameType | None) -> str | None:
    """The module that is being executed, and imports something or calls a function that does.

    If a module calls a function of another one, which was executed before, the import is not one
    of the other module: without the call it would not have happened.
    """
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            spec = frame.f_globals.get("__spec__")
            if getattr(spec, "_initializing", False):
                return str(frame.f_globals.get("__name__"))
        frame = frame.f_back
    return None


def _closure(name: str, edges: Mapping[str, set[str]]) -> set[str]:
    """All modules that importing `name` imports."""
    reached: set[str] = set()
    todo = [name]
    while todo:
        for needed in edges.get(todo.pop(), ()):
            if needed not in reached and needed in sys.modules:
                reached.add(needed)
                todo.append(needed)
    return reached


def _changed(path: str) -> int | None:
    """When a directory changed; None if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


class _LibraryFinder(FileFinder):
    """Finds what another finder does, and first of all what was put aside."""

    def __init__(self, finder: FileFinder) -> None:
        self.__dict__.update(finder.__dict__)

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module that was put aside, or what there is in the directory."""
        module = _stored.get(fullname) if target is None else None
        if module is None or not _is_available(fullname):
            return super().find_spec(fullname, target)
        original = module.__spec__
        assert original is not None
        loader = _StoredLoader(fullname, original.origin or "")
        spec = ModuleSpec(fullname, loader, origin=original.origin)
        spec.submodule_search_locations = original.submodule_search_locations
        if original.origin is not None:  # a package without __init__.py has none
            spec.cached = original.cached
            spec.has_location = True
        return spec


class _RegistryFinder(_LibraryFinder):
    """Finds packages in their directory of the registry, if somebody has put that on the path."""

    def __init__(self, finder: FileFinder, tops: set[str]) -> None:
        super().__init__(finder)
        self._tops = tops

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module that was put aside, or what there is in the directory."""
        if fullname not in self._tops:
            return FileFinder.find_spec(self, fullname, target)
        _packages.found_in_registry(fullname)
        return super().find_spec(fullname, target)


class _StoredLoader(SourceFileLoader):
    """Loads a module by handing out the one that was put aside, if that is still there."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that was put aside."""
        module = _stored.pop(spec.name, None)
        if module is not None:
            spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was executed before the checkpoint: bring what it needs, and news."""
        assert module.__spec__ is not None
        original = module.__spec__.loader_state
        if original is None:
            if self.path:
                super().exec_module(module)
            return
        module.__spec__ = original
        name = original.name
        available: dict[str, bool] = {}
        for needed in _needs[name]:
            if needed in _stored:
                top = needed.partition(".")[0]
                if top not in available:
                    available[top] = _is_available(needed)
                if available[top]:
                    _give(needed, _stored.pop(needed))
        _renew(name, module)


def _give(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        owner = sys.modules.get(parent) or _stored.get(parent)
        if owner is not None:
            owner.__dict__.setdefault(child, module)
    _renew(name, module)


def _renew(name: str, module: Any) -> None:
    """What a module learned from the environment when it was imported."""
    if name == "random":
        module.seed()
    elif name == "logging":
        module._startTime = time.time_ns()
    elif name == "threading":
        module.main_thread()._set_native_id()
    elif name == "multiprocessing":
        sys.modules["__mp_main__"] = sys.modules["__main__"]
    elif name == "multiprocessing.process":
        module.ORIGINAL_DIR = _current_directory()
        key = module.AuthenticationString(os.urandom(_KEY_BYTES))
        module.current_process()._config["authkey"] = key
    elif _packages is not None:
        _packages.renew(name, module)


def _current_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def resume(python_path: str) -> None:
    """What depends on how this process was started; `python_path` is PYTHONPATH."""
    os.reload_environ()  # type: ignore[attr-defined]  # of Python 3.14
    if _packages is not None:
        _packages.check_environment()
    time.tzset()
    home = os.environ.get("HOME")
    user_site = home and os.path.isdir(f"{home}/.local/lib")
    if python_path or user_site or any(map(_has_hooks, _site_directories)):
        _set_path_again(python_path)


def _has_hooks(path: str) -> bool:
    """Whether `site` has something to do in a directory: path files, or modules of its own. Most
    packages bring none."""
    if _changed(path) == _site_directories[path]:
        return False
    try:
        found = os.listdir(path)
    except OSError:
        return True
    hooks = ("sitecustomize", "usercustomize")
    return any(name.endswith(".pth") or name.startswith(hooks) for name in found)


def _set_path_again(python_path: str) -> None:
    """As `site` does at an ordinary start."""
    sys.path[:] = [*(python_path.split(os.pathsep) if python_path else ()), *_search_path]
    known = site.removeduppaths()
    if site.ENABLE_USER_SITE is None:
        site.ENABLE_USER_SITE = site.check_enableusersite()
    known = site.addusersitepackages(known)
    site.addsitepackages(known)
    site.execsitecustomize()
    if site.ENABLE_USER_SITE:
        site.execusercustomize()


def _hint_at_packages() -> None:
    """Have the error for a package that could be installed say so."""
    bootstrap: Any = sys.modules["_frozen_importlib"]
    find = bootstrap._find_spec

    def find_or_hint(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec: ModuleSpec | None = find(name, path, target)
        if spec is None and path is None and name.isidentifier():
            package = _PACKAGE_NAMES.get(name) or name.lower().replace("_", "-")
            if os.path.isdir(f"{_REGISTRY}/{package}"):
                error = ModuleNotFoundError(f"No module named {name!r}", name=name)
                error.add_note(f"It is available: pip install {package}")
                raise error
        return spec

    # Tracebacks leave out the frames of the import system.
    code = find_or_hint.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    find_or_hint.__code__ = code
    bootstrap._find_spec = find_or_hint
