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

from wasmsand.compiled_kernel import install as _install_compiled_kernel

if TYPE_CHECKING:
    from wasmsand.sdk.async_sandbox import (
        AsyncCommandHandle,
        AsyncFileWatch,
        AsyncPortStream,
        AsyncPythonSession,
        AsyncSandbox,
        AsyncSandboxPool,
        AsyncShell,
        AsyncTerminal,
    )
    from wasmsand.sdk.command_handle import CommandHandle, OutputChunk
    from wasmsand.sdk.errors import (
        AlreadyExistsError,
        ArchiveError,
        CommandError,
        ConnectionLostError,
        DirectoryNotEmptyError,
        DiskImageError,
        FileError,
        ForkedError,
        ImageMissingError,
        IndexNotAllowedError,
        InputTimeoutError,
        InvalidPathError,
        IsDirectoryError,
        MountConflictError,
        MountError,
        NativePackageError,
        NoSpaceError,
        NotDirectoryError,
        NotFoundError,
        PackageConflictError,
        PackageError,
        PackageIndexError,
        PackageNotBuiltError,
        PackageNotFoundError,
        PackageVersionError,
        PermissionDeniedError,
        PortError,
        PortTimeoutError,
        SandboxClosedError,
        SandboxCrashedError,
        SandboxError,
        ServerError,
        StateError,
        StateFileError,
        StateImageError,
        StateLimitError,
        StateLostError,
        StateVersionError,
        StoreBusyError,
        StoreError,
        UnsupportedError,
        WasmDirError,
    )
    from wasmsand.sdk.mounts import Mount
    from wasmsand.sdk.network import Network, NetworkEvent
    from wasmsand.sdk.options import SandboxOptions
    from wasmsand.sdk.pool import SandboxPool
    from wasmsand.sdk.ports import PortStream
    from wasmsand.sdk.python_session import PythonSession
    from wasmsand.sdk.results import (
        CommandResult,
        DisplayItem,
        FileInfo,
        MountDiff,
        MountInfo,
        NetworkRules,
        PackageInfo,
        PortInfo,
        ProcessInfo,
        PythonError,
        PythonResult,
        SandboxInfo,
        Usage,
    )
    from wasmsand.sdk.sandbox import Sandbox
    from wasmsand.sdk.shell import Shell
    from wasmsand.sdk.state import Snapshot
    from wasmsand.sdk.stores import DirectoryStore, Store, StoredSandbox
    from wasmsand.sdk.terminal import Terminal
    from wasmsand.sdk.watching import FileEvent, FileWatch

__version__ = "0.1.0"

_install_compiled_kernel(__path__[0], __version__)

_MODULES = {
    "async_sandbox": (
        "AsyncCommandHandle",
        "AsyncFileWatch",
        "AsyncPortStream",
        "AsyncPythonSession",
        "AsyncSandbox",
        "AsyncSandboxPool",
        "AsyncShell",
        "AsyncTerminal",
    ),
    "command_handle": ("CommandHandle", "OutputChunk"),
    "errors": (
        "AlreadyExistsError",
        "ArchiveError",
        "CommandError",
        "ConnectionLostError",
        "DirectoryNotEmptyError",
        "DiskImageError",
        "FileError",
        "ForkedError",
        "ImageMissingError",
        "IndexNotAllowedError",
        "InputTimeoutError",
        "InvalidPathError",
        "IsDirectoryError",
        "MountConflictError",
        "MountError",
        "NativePackageError",
        "NoSpaceError",
        "NotDirectoryError",
        "NotFoundError",
        "PackageConflictError",
        "PackageError",
        "PackageIndexError",
        "PackageNotBuiltError",
        "PackageNotFoundError",
        "PackageVersionError",
        "PermissionDeniedError",
        "PortError",
        "PortTimeoutError",
        "SandboxClosedError",
        "SandboxCrashedError",
        "SandboxError",
        "ServerError",
        "StateError",
        "StateFileError",
        "StateImageError",
        "StateLimitError",
        "StateLostError",
        "StateVersionError",
        "StoreBusyError",
        "StoreError",
        "UnsupportedError",
        "WasmDirError",
    ),
    "mounts": ("Mount",),
    "network": ("Network", "NetworkEvent"),
    "options": ("SandboxOptions",),
    "pool": ("SandboxPool",),
    "ports": ("PortStream",),
    "python_session": ("PythonSession",),
    "results": (
        "CommandResult",
        "DisplayItem",
        "FileInfo",
        "MountDiff",
        "MountInfo",
        "NetworkRules",
        "PackageInfo",
        "PortInfo",
        "ProcessInfo",
        "PythonError",
        "PythonResult",
        "SandboxInfo",
        "Usage",
    ),
    "sandbox": ("Sandbox",),
    "shell": ("Shell",),
    "state": ("Snapshot",),
    "stores": ("DirectoryStore", "Store", "StoredSandbox"),
    "terminal": ("Terminal",),
    "watching": ("FileEvent", "FileWatch"),
}
"""Where in `wasmsand.sdk` each public name is."""

__all__ = [
    "AlreadyExistsError",
    "ArchiveError",
    "AsyncCommandHandle",
    "AsyncFileWatch",
    "AsyncPortStream",
    "AsyncPythonSession",
    "AsyncSandbox",
    "AsyncSandboxPool",
    "AsyncShell",
    "AsyncTerminal",
    "CommandError",
    "CommandHandle",
    "CommandResult",
    "ConnectionLostError",
    "DirectoryNotEmptyError",
    "DirectoryStore",
    "DiskImageError",
    "DisplayItem",
    "FileError",
    "FileEvent",
    "FileInfo",
    "FileWatch",
    "ForkedError",
    "ImageMissingError",
    "IndexNotAllowedError",
    "InputTimeoutError",
    "InvalidPathError",
    "IsDirectoryError",
    "Mount",
    "MountConflictError",
    "MountDiff",
    "MountError",
    "MountInfo",
    "NativePackageError",
    "Network",
    "NetworkEvent",
    "NetworkRules",
    "NoSpaceError",
    "NotDirectoryError",
    "NotFoundError",
    "OutputChunk",
    "PackageConflictError",
    "PackageError",
    "PackageIndexError",
    "PackageInfo",
    "PackageNotBuiltError",
    "PackageNotFoundError",
    "PackageVersionError",
    "PermissionDeniedError",
    "PortError",
    "PortInfo",
    "PortStream",
    "PortTimeoutError",
    "ProcessInfo",
    "PythonError",
    "PythonResult",
    "PythonSession",
    "Sandbox",
    "SandboxClosedError",
    "SandboxCrashedError",
    "SandboxError",
    "SandboxInfo",
    "SandboxOptions",
    "SandboxPool",
    "ServerError",
    "Shell",
    "Snapshot",
    "StateError",
    "StateFileError",
    "StateImageError",
    "StateLimitError",
    "StateLostError",
    "StateVersionError",
    "Store",
    "StoreBusyError",
    "StoreError",
    "StoredSandbox",
    "Terminal",
    "UnsupportedError",
    "Usage",
    "WasmDirError",
    "__version__",
]


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(import_module(f"wasmsand.sdk.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
