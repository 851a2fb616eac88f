"""Every limit of a sandbox, with its default.

Owns all numbers that bound what a guest can consume. Rules: a limit is checked
before the act, never after; the message of a refusal names the option to raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

KIB = 1024
MIB = 1024 * KIB

# Fixed by the kernel, as they are on Linux.
PATH_MAX = 4096
NAME_MAX = 255
SYMLINK_DEPTH_MAX = 40
PIPE_CAPACITY = 64 * KIB
PIPE_ATOMIC_WRITE = 4096
FULL_PIPES_MAX = 512
"""Pipes of one sandbox that have the whole capacity; further ones hold PIPE_ATOMIC_WRITE."""
HOST_CHANNEL_CAPACITY = 256 * KIB
"""Output of a started command that waits for the host to read it."""
SOCKET_QUEUE_BYTES = 208 * KIB
"""What a socket holds of messages not yet received (Linux: net.core.rmem_default)."""
DATAGRAM_COST = 256
"""What a message counts besides its bytes, so that empty ones are not free."""
DATAGRAM_MAX = 65_507
"""Longest message over UDP."""
BACKLOG_MAX = 4096
"""Most connections that wait to be accepted (Linux: net.core.somaxconn)."""
RIGHTS_PER_MESSAGE_MAX = 253
RIGHTS_IN_FLIGHT_MAX = 1024
EPOLL_WATCHES_MAX = 65_536
"""Descriptions watched by one epoll file."""
IO_MAX = 0x7FFF_F000
"""Most bytes that one read or write moves (Linux: MAX_RW_COUNT)."""
IO_CHUNK = 1 * MIB
"""Most bytes the host copies at once; a longer read or write is done in pieces."""
IOV_MAX = 1024
ARGUMENT_BYTES_MAX = 2 * MIB
"""Size of argv and envp together for execve (ARG_MAX)."""
ARGUMENT_STRING_MAX = 128 * KIB
STACK_UNCHARGED_MAX = 16 * MIB
"""C stack of a process that is not charged to memory_limit_bytes: hardly any of it is ever
touched, and charging it would make a shell look ten times its size."""
INTERPRETER_DEPTH_MAX = 5
MODULE_BYTES_MAX = 128 * MIB
"""Largest program that is compiled: it costs the host many times its size."""
FILE_SIZE_MAX = 1 << 44
LINK_MAX = 65000
POLL_FDS_MAX = 4096
GROUPS_MAX = 64

# Compiling programs that guests made. Measured: 1 to 2 s and 40 MiB for each MiB of a program,
# Python (12.3 MiB) 12 s and 500 MiB.
GUEST_MODULE_BYTES_MAX = 64 * MIB
"""Largest one; the host's own (image, `wasm_dir`) have MODULE_BYTES_MAX."""
COMPILE_SECONDS_BASE = 3
COMPILE_SECONDS_PER_MIB = 8
COMPILE_SECONDS_MAX = 60
"""Processor time for one module: by its size, at most this."""
COMPILE_MEMORY_BASE = 192 * MIB
COMPILE_MEMORY_PER_BYTE = 64
COMPILE_MEMORY_MAX = 1024 * MIB
"""Memory of the process that compiles: by the module's size, at most this."""
COMPILED_BYTES_MAX = 256 * MIB
"""Largest result."""
COMPILE_BUDGET_SECONDS = 120.0
"""Processor time that a sandbox may spend on compiling at once."""
COMPILE_BUDGET_SHARE = 0.1
"""Of a processor: how fast it regains that budget."""
COMPILE_BUDGET_MODULES = 128.0
"""Modules that a sandbox may have compiled at once."""
COMPILE_MODULES_PER_SECOND = 0.5
"""How fast it regains that budget."""
COMPILE_QUEUE_MAX = 256
"""Sandboxes of one host process that wait for a compilation."""
SMALL_MODULE_BYTES = 256 * KIB
"""Up to this size a module is compiled beside larger ones, not after them."""
MODULE_SHAPE_MAX: Final[Mapping[str, int]] = MappingProxyType(
    {
        "sections": 1_000,
        "types": 20_000,
        "values in types": 200_000,
        "parameters of a function": 255,
        "results of a function": 64,
        "imports": 1_000,
        "functions": 100_000,
        "tables": 100,
        "globals": 10_000,
        "exports": 10_000,
        "bytes of names": MIB,
        "element segments": 10_000,
        "data segments": 50_000,
        "tags": 1_000,
        "bytes in a function": 512 * KIB,
        "locals of a function": 5_000,
        "locals": 5_000_000,
        "nested blocks": 5_000,
        "blocks in a function": 20_000,
        "loops in a function": 1_000,
        "loops times locals": 200_000,
        "nested loops": 64,
        "nested loops times locals": 50_000,
        "values through blocks": 10_000,
        "values through calls": 200_000,
        "branch targets in a function": 200_000,
    }
)
"""What a program that a guest made may hold: names and imports of all of it, the others as they
say. The compiler's time or memory grows faster than these. The largest values of our own
programs: 290 nested blocks, 1,838 blocks, 152 loops, 183 locals, 83 KB in a function, 27,459
functions (`tests/limits/test_compile_bombs.py` holds them to a quarter of each limit)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use. Names are those of `Sandbox`'s options."""

    fs_limit_bytes: int = 256 * MIB
    max_inodes: int = 65_536
    memory_limit_bytes: int = 1024 * MIB
    """Memory of all processes together, without the C stack of each (STACK_UNCHARGED_MAX)."""
    max_processes: int = 64
    max_open_files: int = 1024
    """Per process (RLIMIT_NOFILE)."""
    max_output_bytes: int = 64 * MIB
    """Captured standard output and error of one command, each."""
