"""Every limit of a sandbox, with its default.

Owns all numbers that bound what a guest can consume. Rules: a limit is checked before the action,
never after; the error message names the option to raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Fixed values, as on Linux.
PATH_MAX: Final = 4096
NAME_MAX: Final = 255
SYMLINK_DEPTH_MAX: Final = 40
PIPE_CAPACITY: Final = 64 * KIB
PIPE_ATOMIC_WRITE: Final = 4096
FULL_PIPES_MAX: Final = 512
"""Pipes of one sandbox with full capacity; further ones hold PIPE_ATOMIC_WRITE bytes."""
OUTPUT_CHANNEL_CAPACITY: Final = 256 * KIB
"""Bytes of a started command's output that wait for the host to read them."""
SOCKET_QUEUE_BYTES: Final = 208 * KIB
"""Bytes of unreceived messages per socket (Linux: net.core.rmem_default)."""
DATAGRAM_COST: Final = 320
"""The cost of a message besides its bytes, so that empty messages are not free."""
DATAGRAM_MAX: Final = 65_507
"""Longest UDP datagram."""
MESSAGES_MAX: Final = 65_536
"""Unreceived messages of one sandbox. Closing a socket frees its messages in one hold of the
sandbox's lock."""
BACKLOG_MAX: Final = 1024
"""Most connections waiting to be accepted (Linux: net.core.somaxconn, 4096). As many sockets more
may wait for a place in the queue. Closing a listener resets them all."""
SOCKETS_MAX: Final = 4096
"""Sockets of one sandbox, including unaccepted connections and ends held by the host. When a
process ends, all its sockets are closed in one hold of the sandbox's lock: about 5 us each
(`tests/limits/test_socket_holds.py`)."""
NOTICES_PER_JOB_MAX: Final = 8
NOTICED_JOBS_MAX: Final = 256
"""Commands for which notices are kept until they end."""
PORT_HOLDERS_MAX: Final = 1024
"""Sockets bound to the same port (SO_REUSEPORT, SO_REUSEADDR)."""
RIGHTS_PER_MESSAGE_MAX: Final = 253
RIGHTS_IN_FLIGHT_MAX: Final = 1024
EPOLL_WATCHES_MAX: Final = 8192
"""Watches of all epoll files in one sandbox (Linux: fs.epoll.max_user_watches)."""
EPOLL_NESTS_MAX: Final = 4
"""How deep epoll files may be nested (Linux: EP_MAX_NESTS)."""
EPOLL_PATHS_MAX = (1000, 500, 100, 50, 10)
"""Paths from a file to the outermost epoll files, by the number of epoll files between them. As on
Linux, the first number is not enforced: a file may have any number of watches."""
TIMER_GAP_NS: Final = 1_000_000
"""The shortest time between two looks of the host at the timers of one sandbox."""
TIMERS_PER_HOLD: Final = 256
"""Timers that fire in one hold of the sandbox's lock."""
IO_MAX: Final = 0x7FFF_F000
"""Most bytes that one read or write transfers (Linux: MAX_RW_COUNT)."""
IO_CHUNK: Final = 1 * MIB
"""Most bytes transferred in one hold of the sandbox's lock; a longer read or write continues after
others could take the lock."""
DIRENT_BYTES_PER_HOLD: Final = 64 * KIB
"""Most bytes of directory entries returned in one hold of the sandbox's lock."""
PATH_NAMES_MAX: Final = 8192
"""Most names that one path walk visits, including those in symbolic links."""
FREED_PER_CALL: Final = 1024
"""Most file chunks, and most nested directories, whose memory one call frees. Later calls free the
rest, which counts against the limits until then."""
HOST_ENTRIES_PER_HOLD: Final = 256
"""Directory entries that a host operation reads, creates or removes in one hold of the sandbox's
lock. For bytes of files, the limit is IO_CHUNK."""
HOST_LISTING_BYTES: Final = 64 * MIB
"""Total length of all paths in one recursive listing by the host."""
IMAGE_ENTRIES_MAX: Final = 1_000_000
"""More entries than any image has: how many a walk by the host may visit besides the guest's
own."""
PROC_FILE_MAX: Final = 1 * MIB
"""Most bytes that the host reads from a file that reports no size (/proc)."""
REMOVAL_ROUNDS: Final = 4
"""How often the host tries to empty a directory that a guest keeps filling."""
ARCHIVE_HEADER_BYTES: Final = 1 * MIB
"""Longest extended (pax) header in a tar archive."""
ARCHIVE_RECORDS_MAX: Final = 64
"""Most records in one extended header."""
ARCHIVE_HEADERS_PER_ENTRY: Final = 4096
"""Average bytes of headers allowed per entry of an archive."""
ARCHIVE_HEADERS_PER_MEMBER: Final = 8
"""Most extended headers before one member of a tar archive."""
ARCHIVE_LINK_BYTES: Final = 64 * MIB
"""Total length of the names stored to recognise hard links while an archive is made."""
IOV_MAX: Final = 1024
CONTROL_BYTES_MAX: Final = 8 * KIB
"""Bytes of control messages in one sendmsg or recvmsg."""
HOSTNAME_MAX: Final = 64
MEMFD_NAME_MAX: Final = 250
PID_MAX: Final = 32_768
TERMINALS_MAX: Final = 64
"""Pseudo-terminals of one sandbox."""
TERMINAL_INPUT_MAX: Final = 4096
"""Unread bytes typed at a terminal (Linux: MAX_CANON)."""
TERMINAL_ECHO_MAX: Final = 16 * TERMINAL_INPUT_MAX
"""VREPRINT does not echo the line again when this much echo is already pending."""
ARGUMENT_BYTES_MAX: Final = 2 * MIB
"""Total size of argv and envp for execve (ARG_MAX)."""
ARGUMENT_STRING_MAX: Final = 128 * KIB
ARGUMENTS_PER_HOLD: Final = 4096
"""Strings of argv and envp that execve reads in one hold of the sandbox's lock."""
STACK_UNCHARGED_MAX: Final = 16 * MIB
"""For C stacks up to this size, only touched pages are charged to memory_limit_bytes. Few pages are
touched; charging all of them would make a shell appear ten times its size."""
THREAD_LOCALS_BYTES_MAX: Final = 1 * MIB
"""Thread-local variables per thread, which are copied when another thread runs."""
PROCESS_BYTES: Final = 192 * KIB
"""Host memory per process besides what is counted: a thread with the part of its stack that is
always in use, the engine's store, the host's own objects."""
DYING_LIMITS: Final = 2
"""Memory in use, including memory about to be freed, is at most this many times
memory_limit_bytes."""
SHARED_LIMITS: Final = 4
"""The same, including the shares of computing guests beyond the smallest ones. With a smaller
number, programs that start together would find no room to grow although there is enough: each holds
its share until it ticks or waits."""
GROWTH_BYTES_MIN: Final = 2 * MIB
GROWTH_PARTS: Final = 64
"""The smallest share of a computing guest is GROWTH_BYTES_MIN, or memory_limit_bytes / GROWTH_PARTS
if that is more, however many others compute."""
INTERPRETER_DEPTH_MAX: Final = 5
MODULE_BYTES_MAX: Final = 128 * MIB
"""Largest program that is compiled: compiling costs the host many times its size."""
MOUNT_NAMES_MAX: Final = 1 << 17
"""Names of a mounted host directory that the sandbox keeps in memory."""
MOUNT_FILES_MAX: Final = 64
"""Files of a mounted host directory that the host keeps open, for each mount."""
MOUNT_LOOKS_MAX: Final = 512
"""Entries of a directory that are looked at together when one of them may have changed, and that
are brought into the tree in one hold of the lock."""
MOUNT_DIFFERENCES_MAX: Final = 100_000
"""Differences between an overlay and the host's directory that are listed."""
MOUNT_WINDOW: Final = 1 << 17
"""Bytes of a mounted file that are read at once for smaller reads."""
MOUNT_CACHE_BYTES: Final = 16 * MIB
"""Bytes of mounted files that the sandbox keeps in memory, for each mount."""
FILE_SIZE_MAX: Final = 1 << 44
LINK_MAX: Final = 65000
POLL_FDS_MAX: Final = 4096
GROUPS_MAX: Final = 64
RECORD_LOCKS_PER_FILE_MAX: Final = 1024
RECORD_LOCKS_MAX: Final = 16 * 1024
"""Record locks of one sandbox."""
PREOPENED_NAMES_MAX: Final = 40
"""Entries of the root directory that are considered as preopened directories of a WASI
program."""
PREOPENED_LEVELS_MAX: Final = 8
"""Parent directories of its working directory that a WASI program can name with `..`."""

# Caches. They are not charged to the ledger, so they are bounded here.
KNOWN_PATHS_MAX: Final = 4096
"""Directories that a file system remembers by path."""
KNOWN_PATH_BYTES_MAX: Final = 512
"""Longer paths are walked every time."""
SCANS_KEPT: Final = 16
SCANNED_NAMES_KEPT: Final = 65_536
"""Directory listings in progress per file system, and names in them: a listing keeps removed names
alive, which nobody is charged for."""
PROC_TEXTS_KEPT: Final = 16
"""Texts of /proc files that are being read in pieces."""

# The cost of kernel objects on the ledger, in bytes: their size in CPython 3.11, rounded up.
# tests/abi/test_ledger.py compares them with tracemalloc.
KERNEL_UNCHARGED_MAX: Final = 4 * MIB
"""Kernel objects and queued data that are not charged to memory_limit_bytes: enough for dozens of
processes with their files, so that guests may have all of that memory for themselves."""
PROCESS_COST: Final = 4096
"""A process's kernel objects; its memory and stacks are charged separately."""
THREAD_COST: Final = 2048
ARGUMENT_COST: Final = 48
"""An argument or environment variable, besides its bytes."""
FD_COST: Final = 96
"""An entry in an fd table."""
OPEN_FILE_COST: Final = 320
PIPE_END_COST: Final = 1024
"""An end of a pipe, with half of the pipe."""
STREAM_SOCKET_COST: Final = 3328
"""Includes both directions of its connection, which the socket keeps after its peer is gone."""
OUTSIDE_END_COST: Final = 2304
"""The host's end of a stream, including both directions of its connection."""
DATAGRAM_SOCKET_COST: Final = 2304
SOCKET_OPTION_COST: Final = 160
"""A socket option that was set."""
RIGHT_COST: Final = 128
"""A descriptor in an unreceived message."""
OUTPUT_PIECE_COST: Final = 128
"""A piece of queued output, besides its bytes: a guest may write single bytes alternately to two
descriptors."""
EVENT_FILE_COST: Final = 768
"""A file of eventfd, timerfd or signalfd."""
PROCESS_FILE_COST: Final = 3072
"""A pidfd keeps the kernel objects of an ended process."""
EPOLL_FILE_COST: Final = 896
WATCH_COST: Final = 896
LOCK_COST: Final = 384
LOCKED_FILE_COST: Final = 768
"""A file with locks, besides the locks."""
TERMINAL_COST: Final = 2 * PIPE_CAPACITY
"""A pseudo-terminal, with the capacity of its buffers."""

# The network. Budgets of one sandbox have these defaults; `Network` changes them.
NETWORK_OPEN_CONNECTIONS: Final = 256
"""Connections to the outside at once."""
NETWORK_CONNECTIONS: Final = 100_000
"""Connections to the outside in the life of a sandbox."""
NETWORK_BYTES_IN: Final = 16 * 1024 * MIB
"""Bytes that a sandbox may receive from the outside."""
NETWORK_BYTES_OUT: Final = 4 * 1024 * MIB
"""Bytes that a sandbox may send to the outside."""
NETWORK_REQUESTS: Final = 100_000
"""HTTP requests to hosts whose requests are inspected."""
NETWORK_RULES_MAX: Final = 4096
"""Rules in one list of a policy, and hosts in one of its tables: every decision reads them all."""
NETWORK_RULE_LENGTH_MAX: Final = 2048
"""Characters in one rule."""
NETWORK_NAMES_MAX: Final = 4096
"""Names of hosts that one sandbox may look up. Each keeps its address as long as the sandbox
exists."""
NETWORK_LOOKUPS_MAX: Final = 32
"""Look-ups of names that one sandbox may have the host do at once."""
NETWORK_WAITING_MAX: Final = 2048
"""Questions and connections of one sandbox that may wait for these look-ups."""
NETWORK_EVENTS_MAX: Final = 1000
"""Events that a sandbox's network log keeps."""
NETWORK_CONNECT_SECONDS: Final = 60
"""How long the host tries to connect to one address."""
PAGE_BODIES_MAX: Final = 64 * MIB
"""Bytes of the bodies of requests that wait in a page until they are complete."""
OUTSIDE_CAPACITY: Final = 1024 * KIB
"""Bytes of a connection to the outside that wait to be read, in each direction."""
PORT_CONNECTIONS_MAX: Final = 512
"""Connections of the host to servers in one sandbox, at once."""
PORT_BACKLOG: Final = 128
"""Connections to a port of the host that wait until the sandbox has room for them."""
PORT_BACKLOG_SECONDS = 10.0
"""How long a connection of the host waits for a place in the backlog of a server in the sandbox."""
PORT_IDLE_SECONDS = 3600.0
"""A connection of the host to a server in the sandbox is closed if no byte moves for this long."""
FORWARDS_MAX: Final = 64
"""Ports of the host that lead to servers in one sandbox."""
HOST_NAME_MAX: Final = 253
HOST_LABEL_MAX: Final = 63
"""Longest host name, and longest part of it between two dots (RFC 1035)."""

# Compiling programs that guests made. Measured: 1 to 2 s and 40 MiB per MiB of program; Python
# (12.3 MiB) takes 12 s and 500 MiB.
GUEST_MODULE_BYTES_MAX: Final = 64 * MIB
"""Largest program of a guest; for trusted programs (image, `wasm_dir`) MODULE_BYTES_MAX applies."""
COMPILE_SECONDS_BASE: Final = 3
COMPILE_SECONDS_PER_MIB: Final = 8
COMPILE_SECONDS_MAX: Final = 60
"""Processor seconds for one module: by its size, at most this."""
COMPILE_MEMORY_BASE: Final = 192 * MIB
COMPILE_MEMORY_PER_BYTE: Final = 64
COMPILE_MEMORY_MAX: Final = 1024 * MIB
"""Memory of the compiling process: by the module's size, at most this."""
COMPILED_BYTES_MAX: Final = 256 * MIB
"""Largest compiled module."""
COMPILE_BUDGET_SECONDS = 120.0
"""Processor seconds that a sandbox may spend on compiling before it has to wait."""
COMPILE_BUDGET_SHARE = 0.1
"""How fast a sandbox regains that budget, as a fraction of one processor."""
COMPILE_BUDGET_MODULES = 128.0
"""Modules that a sandbox may compile before it has to wait."""
COMPILE_MODULES_PER_SECOND = 0.5
"""How fast a sandbox regains that budget."""
COMPILE_QUEUE_MAX: Final = 256
"""Sandboxes of one host process that may wait for a compilation."""
SMALL_MODULE_BYTES: Final = 256 * KIB
"""Modules up to this size are compiled in parallel with larger ones, not after them."""
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
"""Limits for a program that a guest made. The compiler's time or memory grows faster than these
numbers. The largest values in our own programs: 290 nested blocks, 1,838 blocks, 152 loops, 183
locals, 83 KB in a function, 27,459 functions (`tests/limits/test_compile_bombs.py` checks that
they stay below a quarter of each limit)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use. The names are those of `Sandbox`'s options."""

    fs_limit_bytes: int = 256 * MIB
    max_inodes: int = 65_536
    memory_limit_bytes: int = 1024 * MIB
    """Memory of all processes together, including the host's overhead (see `ledger`)."""
    max_processes: int = 64
    max_open_files: int = 1024
    """Per process (RLIMIT_NOFILE)."""
    max_output_bytes: int = 64 * MIB
    """Captured standard output and error of one command, each."""
