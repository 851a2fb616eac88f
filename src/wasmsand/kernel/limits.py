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
DATAGRAM_COST = 320
"""What a message counts besides its bytes, so that empty ones are not free."""
DATAGRAM_MAX = 65_507
"""Longest message over UDP."""
BACKLOG_MAX = 4096
"""Most connections that wait to be accepted (Linux: net.core.somaxconn); as many more may wait
for a place among them."""
SOCKETS_MAX = 8192
"""Sockets of one sandbox, also those of connections that nobody has accepted."""
PORT_HOLDERS_MAX = 1024
"""Sockets that bound the same port (SO_REUSEPORT, SO_REUSEADDR)."""
RIGHTS_PER_MESSAGE_MAX = 253
RIGHTS_IN_FLIGHT_MAX = 1024
EPOLL_WATCHES_MAX = 8192
"""Watches of all epoll files of one sandbox (Linux: fs.epoll.max_user_watches)."""
EPOLL_NESTS_MAX = 4
"""Epoll files above each other, besides the lowest one (Linux: EP_MAX_NESTS)."""
EPOLL_PATHS_MAX = (1000, 500, 100, 50, 10)
"""Ways from a file to epoll files that nobody watches, by the number of epoll files between
them. As on Linux the first number is not enforced: a file may have any number of watches."""
TIMER_GAP_NS = 1_000_000
"""The host looks at the timers of one sandbox at most this often."""
TIMERS_PER_HOLD = 256
"""Timers that go off in one hold of the sandbox's lock."""
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
RECORD_LOCKS_PER_FILE_MAX = 1024
RECORD_LOCKS_MAX = 16 * 1024
"""Record locks of one sandbox."""

# What kernel objects cost on the ledger, in bytes: what they take in CPython 3.11, rounded up.
# tests/abi/test_ledger.py compares them with what tracemalloc finds.
KERNEL_UNCHARGED_MAX = 4 * MIB
"""Kernel objects and queued data that are not charged to memory_limit_bytes: enough for dozens
of processes with their files, so that a guest may have all of that memory for itself."""
PROCESS_COST = 4096
"""The record of a process; its memory and stacks are entries of their own."""
THREAD_COST = 2048
ARGUMENT_COST = 48
"""An argument or environment variable, besides its bytes."""
FD_COST = 96
"""An entry of a table of fds."""
OPEN_FILE_COST = 320
PIPE_END_COST = 1024
"""With half of its pipe."""
STREAM_SOCKET_COST = 3328
"""With both directions of its connection: a peer that is gone leaves them to it."""
DATAGRAM_SOCKET_COST = 2304
SOCKET_OPTION_COST = 160
"""An option of a socket that was set."""
RIGHT_COST = 128
"""A descriptor on its way to another process."""
EVENT_FILE_COST = 768
"""A file of eventfd, timerfd, signalfd."""
PROCESS_FILE_COST = 3072
"""A pidfd keeps the record of a process that has ended."""
EPOLL_FILE_COST = 896
WATCH_COST = 896
LOCK_COST = 384
LOCKED_FILE_COST = 768
"""A file that has locks, besides these."""
TERMINAL_COST = 2 * PIPE_CAPACITY
"""A pseudo-terminal, with all that its buffers can hold."""


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
