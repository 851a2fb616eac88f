"""Links pip into the environment of the running interpreter; `venv` calls it.

Owns what the standard library's package of this name does elsewhere with a bundled wheel. Rules:
pip is the one of the registry, so nothing is copied.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_PIP = "/usr/lib/python/pip"

__all__ = ["bootstrap", "version"]


def version() -> str:
    """The version of pip that is linked."""
    return str(_registry("pip").__version__)


def bootstrap(
    *,
    root: str | None = None,
    upgrade: bool = False,
    user: bool = False,
    altinstall: bool = False,
    default_pip: bool = False,
    verbosity: int = 0,
) -> None:
    """Install pip. The options are those of the standard library; none makes a difference here."""
    _bootstrap(verbosity)


def _bootstrap(verbosity: int = 0) -> int:
    quiet = [] if verbosity else ["-q"]
    return int(_registry("pip._registry.command").run(["install", *quiet, "pip"]))


def _registry(name: str) -> Any:
    """A module of the registry's pip, even if no pip is installed."""
    if "pip" not in sys.modules:
        sys.path.insert(0, _PIP)
        try:
            import_module("pip")
        finally:
            sys.path.remove(_PIP)
    return import_module(name)


def _main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if "--version" in arguments:
        print(f"pip {version()}")
        return 0
    return _bootstrap(verbosity=1)
