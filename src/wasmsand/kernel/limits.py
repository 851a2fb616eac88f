"""Every limit of a sandbox, with its default.

Owns all numbers that bound what a guest can consume. Rules: a limit is checked
before the act, never after; the message of a refusal names the option to raise.
"""

from __future__ import annotations

from dataclasses import dataclass

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
STRING_COST = 48
"""What one costs the host besides its bytes."""
STACK_UNCHARGED_MAX = 16 * MIB
"""C stack of a process of which only what was touched is charged to memory_limit_bytes: that is
hardly any of it, and charging all would make a shell look ten times its size."""
PROCESS_BYTES = 192 * KIB
"""What a process takes of the host's memory besides what is counted: a thread with the part of
its stack that is always in use, the engine's store, the host's own objects."""
GROWTH_BYTES_MIN = 2 * MIB
GROWTH_PARTS = 64
"""A guest may grow by so much, or by this part of memory_limit_bytes if that is more, before the
host looks at it again, however many others compute."""
INTERPRETER_DEPTH_MAX = 5
MODULE_BYTES_MAX = 128 * MIB
"""Largest program that is compiled: it costs the host many times its size."""
FILE_SIZE_MAX = 1 << 44
LINK_MAX = 65000
POLL_FDS_MAX = 4096
GROUPS_MAX = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use. Names are those of `Sandbox`'s options."""

    fs_limit_bytes: int = 256 * MIB
    max_inodes: int = 65_536
    memory_limit_bytes: int = 1024 * MIB
    """Memory of all processes together, and what the host needs for them (see `ledger`)."""
    max_processes: int = 64
    max_open_files: int = 1024
    """Per process (RLIMIT_NOFILE)."""
    max_output_bytes: int = 64 * MIB
    """Captured standard output and error of one command, each."""
