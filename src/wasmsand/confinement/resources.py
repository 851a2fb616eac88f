"""Resource limits of the process.

Rules: a hard limit is only ever lowered; limits that the system does not have are ignored.

There is no limit on address space: each WebAssembly memory reserves 4 GiB and more but uses only
what its program touches, so a limit that allows 64 programs would not bound memory. RLIMIT_DATA
counts writable memory. There is no limit on processes either: the system counts the processes
and threads of the user, not of this process.
"""

from __future__ import annotations

from typing import Final

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MIB: Final = 1 << 20
OPEN_FILES_MAX: Final = 1024
"""For three pipes, files of the image, memory images, and up to 512 connections to servers in the
sandbox; guests' files need no descriptors."""
NETWORK_FILES_MAX: Final = 4096
"""The same for a process with a network: each connection needs a descriptor."""
FILE_BYTES_MAX: Final = 1 << 30
"""The largest file that the process may write, for example a memory image."""
_BASE_BYTES: Final = 1024 * MIB
"""Python, wasmtime and one compilation."""
_PROCESS_BYTES: Final = (96 + 8) * MIB
"""Per process of the sandbox: its thread's stack, which counts in full, and objects of the host."""
_UNCHARGED_BYTES: Final = 16 * MIB
"""A guest's C stack."""


def limit_resources(
    *, network: bool = False, open_files: int | None = None, file_bytes: int | None = None
) -> bool:
    """Limit open files and file size, and disable core dumps, which would contain secrets. Without
    `open_files` and `file_bytes`, the limits are those of one sandbox."""
    if resource is None:
        return False
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, open_files or (NETWORK_FILES_MAX if network else OPEN_FILES_MAX))
    _lower(resource.RLIMIT_FSIZE, file_bytes or FILE_BYTES_MAX)
    return True


def limit_memory(
    guests: int,
    files: int,
    output: int,
    processes: int,
    *,
    sandboxes: int = 1,
    most_sandboxes: int = 1,
) -> int | None:
    """Limit the memory of this process to the maximum that `sandboxes` sandboxes with these limits
    can need (bytes of guest memory, files and output; number of processes). Later calls may raise
    it for up to `most_sandboxes`. Returns the limit; None if the system has no such limit."""
    if resource is None:
        return None
    each = processes * (_PROCESS_BYTES + _UNCHARGED_BYTES)
    # Files and output are also copied to JSON and base64.
    each += 2 * guests + 8 * files + 8 * output
    most = _BASE_BYTES + sandboxes * each
    _lower(resource.RLIMIT_DATA, _BASE_BYTES + most_sandboxes * each)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (min(most, hard), hard))
    return most


def _lower(limit: int, value: int) -> None:
    soft, hard = resource.getrlimit(limit)
    infinity = resource.RLIM_INFINITY
    hard = value if hard == infinity else min(hard, value)
    soft = hard if soft == infinity else min(soft, hard)
    resource.setrlimit(limit, (soft, hard))
