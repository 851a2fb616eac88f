"""wasmsand: a computer for AI agents in a Python package.

    from wasmsand import Sandbox

    with Sandbox() as sandbox:
        print(sandbox.commands.run("echo hello | tr a-z A-Z").stdout)

Owns the public names, and nothing else: what is not listed in `__all__` is private
and may change in any version. The names are loaded when they are first used, so that
importing one layer (as `wasmsand.kernel`) does not import those above it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wasmsand.sdk.errors import (
        AlreadyExistsError,
        CommandError,
        DirectoryNotEmptyError,
        FileError,
        ImageMissingError,
        InvalidPathError,
        IsDirectoryError,
        NoSpaceError,
        NotDirectoryError,
        NotFoundError,
        PermissionDeniedError,
        SandboxClosedError,
        SandboxError,
        ToolError,
    )
    from wasmsand.sdk.results import CommandResult, FileInfo
    from wasmsand.sdk.sandbox import Sandbox

__version__ = "0.1.0"

__all__ = [
    "AlreadyExistsError",
    "CommandError",
    "CommandResult",
    "DirectoryNotEmptyError",
    "FileError",
    "FileInfo",
    "ImageMissingError",
    "InvalidPathError",
    "IsDirectoryError",
    "NoSpaceError",
    "NotDirectoryError",
    "NotFoundError",
    "PermissionDeniedError",
    "Sandbox",
    "SandboxClosedError",
    "SandboxError",
    "ToolError",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Sandbox":
        module = import_module("wasmsand.sdk.sandbox")
    elif name in ("CommandResult", "FileInfo"):
        module = import_module("wasmsand.sdk.results")
    else:
        module = import_module("wasmsand.sdk.errors")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
