"""Modules of sessions: `IPython.display` if IPython is not installed, and the hook of pyplot.

Rules: an installed IPython is used, but its `display` is the session's; nothing is imported that
the program does not import.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from wasmsand.sdk.python_driver import driver

OURS = {"IPython", "IPython.display", "IPython.core", "IPython.core.display"}
HOOKED = {"matplotlib.pyplot", "IPython.display", "IPython.core.display_functions"}


def find(name: str, path: Any, target: Any) -> ModuleSpec | None:
    """The specification of a module for which a session has something to do."""
    if name == "matplotlib":
        os.environ.setdefault("MPLBACKEND", "agg")
    if name not in OURS and name not in HOOKED:
        return None
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is None or getattr(parent, "__spec__", None) is None:
        spec = installed(name, path, target)
    else:
        own = isinstance(parent.__spec__.loader, SessionLoader)  # type: ignore[union-attr]
        spec = None if own else installed(name, path, target)
    if spec is None:
        if name not in OURS:
            return None
        is_package = name in ("IPython", "IPython.core")
        return ModuleSpec(name, SessionLoader(), is_package=is_package)  # type: ignore[arg-type]
    if name in HOOKED and spec.loader is not None:
        spec.loader = HookedLoader(spec.loader)  # type: ignore[assignment]
    return spec


def installed(name: str, path: Any, target: Any) -> ModuleSpec | None:
    """What the other finders find."""
    for finder in list(sys.meta_path):
        if finder is not driver.finder and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


class SessionLoader:
    """Loads the modules that exist only in sessions."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See importlib.abc.Loader."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """See importlib.abc.Loader."""
        display = driver.part("display")
        public = {name: display.__dict__[name] for name in display.__all__}
        if module.__name__ == "IPython":
            module.__dict__.update(
                display=display.display,
                get_ipython=lambda: None,
                __version__="0.0",
                version_info=(0, 0),
            )
        elif module.__name__ != "IPython.core":
            module.__dict__.update(public, __all__=list(public))


class HookedLoader:
    """Loads a module as another loader does, and then adapts it to the session."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See importlib.abc.Loader."""
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """See importlib.abc.Loader."""
        self._loader.exec_module(module)
        if module.__spec__ is not None and module.__spec__.loader is self:  # type: ignore[comparison-overlap]
            module.__spec__.loader = module.__loader__ = self._loader
        if module.__name__ == "matplotlib.pyplot":
            driver.part("figures").hook(module)
        elif hasattr(module, "display"):
            module.__dict__["display"] = driver.part("display").display
