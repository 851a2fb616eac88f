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
OUTPUT_CHANNEL_CAPACITY = 256 * KIB
"""Output of a started command that waits for the host to read it."""
SOCKET_QUEUE_BYTES = 208 * KIB
"""What a socket holds of messages not yet received (Linux: net.core.rmem_default)."""
DATAGRAM_COST = 320
"""What a message costs besides its bytes, so that empty messages are not free."""
DATAGRAM_MAX = 65_507
"""Longest message over UDP."""
MESSAGES_MAX = 65_536
"""Messages of one sandbox that wait to be received. Closing a socket frees them in one hold of
the sandbox's lock."""
BACKLOG_MAX = 1024
"""Most connections that wait to be accepted (Linux: net.core.somaxconn, 4096); as many more may
wait for a place among them. A listener breaks them all off when it is closed."""
SOCKETS_MAX = 4096
"""Sockets of one sandbox, with those of connections that nobody has accepted and the ends that
the host holds. The end of a process closes all that it has in one hold of the sandbox's lock:
about 5 us each (`tests/limits/test_socket_holds.py`)."""
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
"""Most bytes that one hold of the sandbox's lock moves; a longer read or write goes on after
others had a chance to take the lock."""
DIRENT_BYTES_PER_HOLD = 64 * KIB
"""Most bytes of directory entries that one hold of the sandbox's lock gives."""
PATH_NAMES_MAX = 8192
"""Most names that one look-up of a path walks through, those of symbolic links included."""
FREED_PER_CALL = 1024
"""Most chunks of files, and most nested directories, whose memory one call gives back to the
host. What is left over is given back by later calls, and counts against the limits till then."""
HOST_ENTRIES_PER_HOLD = 256
"""Entries of directories that an operation of the host looks at, makes or removes before it
lets others have the sandbox's lock. Bytes of files: IO_CHUNK."""
HOST_LISTING_BYTES = 64 * MIB
"""All paths together of one recursive listing for the host."""
IMAGE_ENTRIES_MAX = 1_000_000
"""More entries than any image has: what a walk of the host may see besides the guest's own."""
PROC_FILE_MAX = 1 * MIB
"""Most bytes that the host reads of a file without a size (/proc)."""
REMOVAL_ROUNDS = 4
"""How often the host empties a directory again that a guest fills meanwhile."""
ARCHIVE_HEADER_BYTES = 1 * MIB
"""Longest extended (pax) header of a tar archive."""
ARCHIVE_RECORDS_MAX = 64
"""Most records in one extended header."""
ARCHIVE_HEADERS_PER_ENTRY = 4096
"""Most bytes of headers per entry of an archive, on average."""
ARCHIVE_HEADERS_PER_MEMBER = 8
"""Most extended headers before one member of a tar archive."""
ARCHIVE_LINK_BYTES = 64 * MIB
"""All names together that are kept to recognise hard links while an archive is made."""
IOV_MAX = 1024
CONTROL_BYTES_MAX = 8 * KIB
"""Control messages of one sendmsg or recvmsg."""
HOSTNAME_MAX = 64
MEMFD_NAME_MAX = 250
PID_MAX = 32_768
TERMINALS_MAX = 64
"""Pseudo-terminals of one sandbox."""
TERMINAL_INPUT_MAX = 4096
"""Bytes typed at a terminal that no program has read (Linux: MAX_CANON)."""
TERMINAL_ECHO_MAX = 16 * TERMINAL_INPUT_MAX
"""A line is not shown again (VREPRINT) when the terminal already owes this much echo."""
ARGUMENT_BYTES_MAX = 2 * MIB
"""Size of argv and envp together for execve (ARG_MAX)."""
ARGUMENT_STRING_MAX = 128 * KIB
ARGUMENTS_PER_HOLD = 4096
"""Strings of argv and envp that execve reads in one hold of the sandbox's lock."""
STACK_UNCHARGED_MAX = 16 * MIB
"""Of a C stack up to this size, only what was touched is charged to memory_limit_bytes: that is
hardly any of it, and charging all of it would make a shell look ten times its size."""
THREAD_LOCALS_BYTES_MAX = 1 * MIB
"""Thread-local variables of one thread, which are copied when another thread runs."""
PROCESS_BYTES = 192 * KIB
"""What a process takes of the host's memory besides what is counted: a thread with the part of
its stack that is always in use, the engine's store, the host's own objects."""
DYING_LIMITS = 2
"""What is in use, with what is about to be freed, is at most this many times
memory_limit_bytes."""
SHARED_LIMITS = 4
"""The same, with what guests may grow by until they are looked at. With less, programs that start
together would find no room to grow while there is enough: each holds its share until it ticks or
waits."""
GROWTH_BYTES_MIN = 2 * MIB
GROWTH_PARTS = 64
"""A guest may grow by GROWTH_BYTES_MIN, or by memory_limit_bytes / GROWTH_PARTS if that is
more, before the host looks at it again, however many others compute."""
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
PREOPENED_NAMES_MAX = 40
"""Entries of the root directory that are looked at for the directories a WASI program starts
with."""
PREOPENED_LEVELS_MAX = 8
"""Directories above its own that a WASI program can name by `..`."""

# What is kept to answer faster; it is not on the ledger, so it is bounded here.
KNOWN_PATHS_MAX = 4096
"""Directories that a file system remembers by path."""
KNOWN_PATH_BYTES_MAX = 512
"""Longer paths are walked every time."""
SCANS_KEPT = 16
SCANNED_NAMES_KEPT = 65_536
"""Directories of a file system that are being listed, and names in these listings: a listing
keeps names alive that were removed since, and nobody pays for those."""
PROC_TEXTS_KEPT = 16
"""Texts of /proc files that are being read in pieces."""

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
"""An end of a pipe, with half of the pipe."""
STREAM_SOCKET_COST = 3328
"""With both directions of its connection, which the socket keeps when its peer is gone."""
OUTSIDE_END_COST = 2304
"""The host's end of a stream, with both directions of its connection."""
DATAGRAM_SOCKET_COST = 2304
SOCKET_OPTION_COST = 160
"""An option of a socket that was set."""
RIGHT_COST = 128
"""A descriptor on its way to another process."""
OUTPUT_PIECE_COST = 128
"""A piece of output that waits for the host, besides its bytes: a guest may write single bytes to
two descriptors in turn."""
EVENT_FILE_COST = 768
"""A file of eventfd, timerfd, signalfd."""
PROCESS_FILE_COST = 3072
"""A pidfd keeps the record of a process that has ended."""
EPOLL_FILE_COST = 896
WATCH_COST = 896
LOCK_COST = 384
LOCKED_FILE_COST = 768
"""A file that has locks, besides the locks."""
TERMINAL_COST = 2 * PIPE_CAPACITY
"""A pseudo-terminal, with all that its buffers can hold."""

# Compiling programs that guests made. Measured: 1 to 2 s and 40 MiB for each MiB of a program,
# Python (12.3 MiB) 12 s and 500 MiB.
GUEST_MODULE_BYTES_MAX = 64 * MIB
"""Largest program of a guest; for the host's own (image, `wasm_dir`) it is MODULE_BYTES_MAX."""
COMPILE_SECONDS_BASE = 3
COMPILE_SECONDS_PER_MIB = 8
COMPILE_SECONDS_MAX = 60
"""Processor time for one module: by its size, at most this."""
COMPILE_MEMORY_BASE = 192 * MIB
COMPILE_MEMORY_PER_BYTE = 64
COMPILE_MEMORY_MAX = 1024 * MIB
"""Memory of the process that compiles: by the module's size, at most this."""
COMPILED_BYTES_MAX = 256 * MIB
"""Largest compiled module."""
COMPILE_BUDGET_SECONDS = 120.0
"""Processor time that a sandbox may spend on compiling at once."""
COMPILE_BUDGET_SHARE = 0.1
"""How fast a sandbox regains that budget, as a part of one processor."""
COMPILE_BUDGET_MODULES = 128.0
"""Modules that a sandbox may have compiled at once."""
COMPILE_MODULES_PER_SECOND = 0.5
"""How fast a sandbox regains that budget."""
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
"""What a program that a guest made may contain. The compiler's time or memory grows faster than
these numbers. The largest values of our own programs: 290 nested blocks, 1,838 blocks, 152
loops, 183 locals, 83 KB in a function, 27,459 functions (`tests/limits/test_compile_bombs.py`
holds them to a quarter of each limit)."""


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
