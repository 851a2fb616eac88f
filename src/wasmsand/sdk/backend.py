"""`Backend`: the seam between the API and what runs the sandbox.

Owns the operations that `Sandbox` and its parts use. Their arguments and results are plain values
of `machine/command.py` and `results`. A backend is a machine in this process (`local`), in a
separate process, or on a server; the API is the same for all.

The API validates arguments, applies the defaults of commands, decodes text, and handles globs and
directories of the host. So a backend gets complete and valid requests, and returns bytes and
numbers. The sandbox's variables and working directory belong to the backend, because they are part
of the sandbox's state.

Rules for authors of backends:

- Paths are absolute paths in the sandbox. A `str` may contain surrogate escapes, for bytes that
  are not UTF-8 (PEP 383).
- Methods block. Several threads may call them at the same time.
- Failures are exceptions of `errors`, so that they are the same for every backend: `file_error`
  creates the one for a message, an errno and a path; `CommandError` is for commands. If the
  process or server of the sandbox is lost, a method raises `SandboxClosedError`.
- An operation that a backend does not offer raises `UnsupportedError` (see `unsupported`).
- A backend has `has_our_bash = False` if its bash is not the one of our image: then a shell does
  not try the session mode.
- A backend has `survives_fork = True` if a forked process can use it; the API refuses to use other
  backends there.
- `close` is idempotent, and ends the calls of other threads. A backend frees its resources when
  it is garbage-collected.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Protocol

from wasmsand.machine.command import (
    DEFAULT_USER,
    STDERR,
    STDIN,
    STDOUT,
    CapturedOutput,
    CommandRequest,
    Completed,
    Ended,
    Output,
)
from wasmsand.machine.many_files import FileWrite
from wasmsand.sdk.package_requests import PackageRequest
from wasmsand.sdk.results import (
    FileInfo,
    MountDiff,
    MountInfo,
    NetworkRules,
    PackageInfo,
    PortInfo,
    ProcessInfo,
    Usage,
)

if TYPE_CHECKING:
    import socket

    from wasmsand.machine.network.events import NetworkEvent
    from wasmsand.sdk.mounts import Mount
    from wasmsand.sdk.options import SandboxOptions
    from wasmsand.sdk.state import SandboxState

__all__ = [
    "CANCELLATION",
    "DEFAULT_USER",
    "STDERR",
    "STDIN",
    "STDOUT",
    "Backend",
    "BackendProcess",
    "BackendTerminal",
    "Cancellation",
    "CapturedOutput",
    "CommandRequest",
    "Completed",
    "Ended",
    "FileWrite",
    "Output",
    "PackageRequest",
]


class Cancellation:
    """Cancels a `Backend.run`, or another call that waits for a command, from another thread."""

    __slots__ = ("_act", "_lock", "cancelled", "has_effect")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._act: Callable[[], None] | None = None
        self.cancelled = False
        self.has_effect = False
        """Whether a backend has called `on_cancel`."""

    def cancel(self) -> None:
        """Kill the command now, or as soon as it has started."""
        with self._lock:
            self.cancelled = True
            act, self._act = self._act, None
        if act is not None:
            act()

    def on_cancel(self, act: Callable[[], None]) -> None:
        """For the backend: set the function that ends the command. It is called at once if the
        command was already cancelled."""
        with self._lock:
            self.has_effect = True
            if not self.cancelled:
                self._act = act
                return
        act()


CANCELLATION: ContextVar[Cancellation | None] = ContextVar("CANCELLATION", default=None)
"""The cancellation that applies to the calls of this thread, if any."""


class BackendProcess(Protocol):
    """A started command and its streams.

    Output of all descriptors is one sequence, in the order of the writes. A bounded amount is
    buffered; when the buffer is full, the command waits, as at a full pipe. If the process object
    is garbage-collected, further output is dropped.
    """

    @property
    def pid(self) -> int:
        """The pid of the started process."""

    def now(self) -> float:
        """The current time, in seconds, of the clock for every `timeout_seconds` below. Callers
        that wait in several steps use it to compute deadlines. It may stand still while the sandbox
        compiles one of its own programs, so look at it again after a `TimeoutError`."""

    def uncounted_seconds(self) -> float:
        """How long this clock has stood still so far."""

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """Wait for output, and return everything that was written since the last call.

        The result is empty when the process has ended and all output was read. Raises
        `TimeoutError` if there is no output within `timeout_seconds`.
        """

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...] | None:
        """Write all of `request` to an input, and wait for output like `read`; but, unless
        `awaited` is None, until there is output of that descriptor, or much output of others.

        None if nothing was written: the input cannot take it at once, or the backend has no faster
        way than `write` and `read`. After a `TimeoutError`, the request was written.
        """

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """Write to an input; wait until the command reads.

        Returns how many bytes the input has accepted: all of `data`, or fewer on a timeout (with 0,
        as many as fit without waiting). Raises `CommandError`: EPIPE if the input has no reader
        any more, EBADF if it was closed.
        """

    def close_input(self, fd: int = STDIN) -> None:
        """Close an input; idempotent."""

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """Wait for the end of the process, even if its output was not read. Returns None if the
        process still runs after `timeout_seconds` (0 does not wait)."""

    def take_notices(self) -> tuple[str, ...]:
        """What the sandbox did to the processes of a command that still runs, each once. A backend
        that does not know it before the end of the command returns nothing."""

    def kill(self) -> None:
        """End every process of the command; idempotent."""


class BackendTerminal(Protocol):
    """A program on a pseudo-terminal, as a terminal emulator sees it.

    A bounded amount of output is buffered; when the buffer is full, the program waits. When the
    object is garbage-collected, the terminal hangs up.
    """

    @property
    def pid(self) -> int:
        """The pid of the started process."""

    def read(self, count: int = 65536, timeout_seconds: float | None = None) -> bytes:
        """Wait for output, and return up to `count` bytes of it. The result is empty when the
        program has ended and all output was read, and after `close`. One thread reads at a time.
        Raises `TimeoutError`."""

    def write(self, data: bytes, timeout_seconds: float | None = None) -> int:
        """Send input, as if it were typed; wait while the program does not read. Returns how many
        bytes were accepted: all, or fewer on a timeout. Raises `CommandError`: EPIPE if the program
        has ended, EBADF after `close`."""

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """The program's exit code; None if it still runs after `timeout_seconds`."""

    def kill(self) -> None:
        """End every process of the command; idempotent."""

    def close(self) -> None:
        """Hang up the terminal; idempotent."""


class Backend(Protocol):
    """The operations of one sandbox."""

    variables: dict[str, str]
    """The environment variables that the user has set, initially `SandboxOptions.env`.
    `Environment` changes them, and `CommandBuilder` adds them to every `CommandRequest`."""
    cwd: str
    """The default working directory of commands."""

    # Commands.

    def run(self, request: CommandRequest, cancellation: Cancellation | None = None) -> Completed:
        """Run a command to its end. Raises `CommandError` if it cannot be started."""

    def start(self, request: CommandRequest) -> BackendProcess:
        """Start a command, and return at once."""

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """Start a command on a new terminal, which is its standard input and output. Only `argv`,
        `environ` and `cwd` of `request` are used."""

    def processes(self) -> list[ProcessInfo]:
        """All processes, sorted by pid."""

    # Copies.

    def capture(self, process: BackendProcess) -> object:
        """A program of this sandbox with its memory, as a value that never changes. The program
        waits for a request with an empty stack. Raises `StateError`."""

    def capture_at_fork(self, process: BackendProcess) -> Callable[[], object]:
        """Capture a program at its next fork. Call the returned function after the fork: it returns
        what was captured. Both raise `StateError`."""

    def take_state(self, captured: Sequence[object] = ()) -> object:
        """Everything but the programs, as a value that never changes. A sandbox with this state has
        to `adopt` the programs that were `captured` before."""

    def open_state(self, state: object, options: SandboxOptions) -> Backend:
        """A new sandbox of this kind with a state that one of this kind has taken."""

    def restore_state(self, state: object, options: SandboxOptions) -> Backend:
        """The same, for a sandbox that takes the place of this one; the caller closes this one."""

    def adopt(self, captured: object, *, is_last: bool) -> BackendProcess:
        """Let a copy of a captured program run in this sandbox, which has the state of the same
        moment. `is_last`: nobody will ask for another copy. Raises `StateError`."""

    def save_state(self, state: SandboxState, name: str | None, stream: IO[bytes]) -> None:
        """Write a state that this kind of sandbox has taken, as `Sandbox.save` does. Also works
        after `close`. Raises `StateError`."""

    def size_of(self, copied: object) -> int:
        """How many bytes a captured program or a state holds at most; what it shares with others
        counts too."""

    def kill_process(self, pid: int) -> bool:
        """End a process or, if the host started it, every process of its command. False if there is
        none."""

    def signal(self, pid: int, number: int) -> None:
        """Send a signal. Raises `CommandError` (ESRCH) if there is no such process."""

    def usage(self) -> Usage:
        """What the sandbox uses, and its limits."""

    # Files.

    def read_file(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """Up to `count` bytes of a regular file from `offset` on; None means to its end."""

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Create or replace a regular file atomically: after a failure, the old file remains.

        Missing directories are created. Without `mode`, an existing file keeps its mode.
        """

    def write_files(self, files: Sequence[FileWrite]) -> None:
        """Write several files as `write_file` does: all of them, or none."""

    def append_file(self, path: str, data: bytes) -> None:
        """Append all of `data`, or nothing, to a regular file. A missing file is created, with the
        directories above it."""

    def list_directory(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """The entries of a directory, or of the tree below it, sorted by path. Symbolic links
        below `path` are not followed."""

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        """Create a directory. With `parents`, create those above it too, and accept an existing
        one."""

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty directory; with `recursive`, a whole tree."""

    def rename(self, source: str, target: str) -> None:
        """Rename as rename(2) does: a file or an empty directory at `target` is replaced."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file, a link or a whole tree to the path `target`, with modes.

        Missing directories are created. A file at `target` is replaced. If `source` and `target`
        are directories, the entries of `source` are copied into `target`.
        """

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """Describe the file at a path."""

    def chmod(self, path: str, mode: int) -> None:
        """Set permission bits; a symbolic link is followed."""

    def symlink(self, target: str, path: str) -> None:
        """Create a symbolic link to `target`, which need not exist."""

    def read_link(self, path: str) -> str:
        """The target of a symbolic link."""

    def export_tar(self, path: str) -> Iterator[bytes]:
        """The tree below `path`, or one file, as pieces of a tar archive (PAX, not compressed)
        with names relative to `path`."""

    def import_tar(self, path: str, pieces: Iterable[bytes]) -> None:
        """Unpack a tar archive, plain or gzip-compressed, into the directory `path`, which is
        created. Nothing is written outside `path`, whatever names and links the archive has."""

    # Packages.

    def install_packages(self, request: PackageRequest) -> None:
        """Install Python packages, all or none. Raises `PackageError`; `NoSpaceError` if the file
        system is full; `ValueError` for text that is not a requirement."""

    def uninstall_packages(self, names: tuple[str, ...]) -> None:
        """Uninstall Python packages, all or none. Raises `PackageNotFoundError`."""

    def installed_packages(self) -> list[PackageInfo]:
        """The Python packages that programs can import, sorted by name."""

    def available_packages(self) -> list[PackageInfo]:
        """The Python packages of the image, sorted by name."""

    # The network.

    def allow_network(self, rules: tuple[str, ...]) -> None:
        """Allow more. `ValueError` if a rule is malformed or exceeds the ceiling."""

    def deny_network(self, rules: tuple[str, ...]) -> None:
        """Deny something, and reset connections that are no longer allowed."""

    def network_rules(self) -> NetworkRules:
        """The rules as they are now."""

    def network_log(self) -> list[NetworkEvent]:
        """The newest events, oldest first."""

    # Ports: servers in the sandbox, and their users on this machine.

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """A stream to the program that listens on a TCP port of the sandbox. Raises `PortError`:
        ECONNREFUSED if there is none."""

    def wait_port(self, port: int, timeout_seconds: float | None) -> bool:
        """Wait until a program listens on a port; False if none does in time."""

    def listening_ports(self) -> list[PortInfo]:
        """The ports on which programs listen, sorted."""

    def open_port(self, port: int, host_port: int | None) -> str:
        """The URL at which a port of the sandbox can be reached. This opens a port of 127.0.0.1:
        `host_port`, or a free one (0). Without `host_port`, a sandbox on a server has a URL of the
        server. Raises `PortError`."""

    def close_port(self, port: int) -> bool:
        """Close what `open_port` has opened; False if there is nothing. Open connections stay."""

    # Mounts.

    def mount(self, path: str, mount: Mount) -> MountInfo:
        """Mount something. Raises `MountError`, `FileError`."""

    def unmount(self, path: str, *, force: bool = False) -> None:
        """Unmount. EBUSY if a process uses it and `force` is not set."""

    def mounts(self) -> list[MountInfo]:
        """What was mounted by the host, oldest first."""

    def mount_diff(self, path: str, *, patch: bool) -> MountDiff:
        """How an overlay differs from its directory."""

    def apply_mount(self, path: str, *, force: bool = False) -> MountDiff:
        """Write the changes of an overlay to its directory. Raises `MountConflictError`."""

    # State at rest.

    def save_disk(self, stream: IO[bytes]) -> None:
        """Write a disk image: the differences between the sandbox's files and those of a new
        sandbox. Commands may run meanwhile: the image shows the files at one moment. Also works
        after `close`."""

    def load_disk(self, stream: IO[bytes]) -> None:
        """Load a disk image of `save_disk` into a new sandbox. Raises `DiskImageError` if the
        image is invalid or does not fit."""

    # Life.

    def close(self) -> None:
        """End every process and delete every file."""
