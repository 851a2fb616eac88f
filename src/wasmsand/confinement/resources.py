"""How much of the machine the process may use.

Rules: a limit is only ever lowered; where a system has no such limit, it is left out.

There is none on address space: each memory of WebAssembly reserves 4 GiB and more, of which it
touches what its program uses, so that a limit which lets 64 programs run says nothing about
memory. RLIMIT_DATA counts what is writable, which is what may become real. Nor is there one on
processes: the system counts those, and the threads, of the user and not of this process.
"""

from __future__ import annotations

from typing import Final

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MIB: Final = 1 << 20
OPEN_FILES_MAX: Final = 256
"""Three pipes, the image's files, memory images: guests' files are none of the host's."""
FILE_BYTES_MAX: Final = 1 << 30
"""The largest file that may be written, as an image of memory."""
_BASE_BYTES: Final = 1024 * MIB
"""Python, wasmtime and what one compilation may use."""
_PROCESS_BYTES: Final = (96 + 8) * MIB
"""The stack of a guest's thread, all of which counts, and what the host has for it."""
_UNCHARGED_BYTES: Final = 16 * MIB
"""A guest's C stack."""


def limit_resources() -> bool:
    """Bound what no sandbox needs more of, and write no cores: they would hold its secrets."""
    if resource is None:
        return False
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, OPEN_FILES_MAX)
    _lower(resource.RLIMIT_FSIZE, FILE_BYTES_MAX)
    return True


def limit_memory(guests: int, files: int, output: int, processes: int) -> int | None:
    """Bound the memory of this process by what a sandbox with these limits (bytes of guest
    memory, of files, of output; number of processes) can need at most. Returns the bound; None
    where there is none."""
    if resource is None:
        return None
    most = _BASE_BYTES + processes * (_PROCESS_BYTES + _UNCHARGED_BYTES)
    # Files and output are also on their way through JSON and base64.
    most += 2 * guests + 8 * files + 8 * output
    _lower(resource.RLIMIT_DATA, most)
    return most


def _lower(limit: int, value: int) -> None:
    soft, hard = resource.getrlimit(limit)
    infinity = resource.RLIM_INFINITY
    hard = value if hard == infinity else min(hard, value)
    soft = hard if soft == infinity else min(soft, hard)
    resource.setrlimit(limit, (soft, hard))
