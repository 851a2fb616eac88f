"""`Backend`: the one seam between the API and whatever runs the sandbox.

Owns the small set of operations that `Sandbox` and its parts are written on. The plain values
that travel through it are those of `machine/command.py` and `results`. A backend is a machine in
this process (`local`), one in a process of its own, or one behind a server: another backend,
never another API.

What the API does above the seam, so that no backend need: checks of arguments, defaults of
commands, text and its decoding, globs, host directories. What a backend gets is complete and
checked; what it returns is bytes and numbers. The sandbox's variables and working directory are
the backend's: they are a part of the sandbox's state.

Rules for who writes one:

- Paths are absolute paths in the sandbox. A `str` may hold surrogate escapes, for bytes that
  are not UTF-8 (PEP 383).
- Methods block, and may be called from any thread, several at a time.
- Failures are the exceptions of `errors`: `file_error` makes the right one of a message, an
  errno and a path, `CommandError` is for commands, so that they are alike from every
  backend. A backend whose other side is gone raises `SandboxClosedError`.
- An operation that a backend does not offer raises `UnsupportedError` (see `unsupported`).
- A backend that a process forked from this one can use has `survives_fork = True`; others are
  refused there before they are asked.
- `close` is idempotent, and ends what other threads wait for. A backend that nobody holds any
  more frees by itself what it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import IO, Protocol

from wasmsand.machine.command import (
    STDERR,
    STDIN,
    STDOUT,
    CapturedOutput,
    CommandRequest,
    Completed,
    Ended,
    Output,
)
from wasmsand.sdk.results import FileInfo, ProcessInfo, Usage

__all__ = [
    "CANCELLATION",
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
    "Output",
]


class Cancellation:
    """A way to give up a `Backend.run`, or what else waits for a command, from another thread."""

    __slots__ = ("_act", "_lock", "cancelled", "has_effect")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._act: Callable[[], None] | None = None
        self.cancelled = False
        self.has_effect = False
        """Whether somebody knows how to end the command."""

    def cancel(self) -> None:
        """End the command: now, or as soon as it has started."""
        with self._lock:
            self.cancelled = True
            act, self._act = self._act, None
        if act is not None:
            act()

    def on_cancel(self, act: Callable[[], None]) -> None:
        """For the backend: how to end the command. Called at once if that is wanted already."""
        with self._lock:
            self.has_effect = True
            if not self.cancelled:
                self._act = act
                return
        act()


CANCELLATION: ContextVar[Cancellation | None] = ContextVar("CANCELLATION", default=None)
"""How whoever called may give up what this thread is about to wait for."""


class BackendProcess(Protocol):
    """A command that runs, with streams to it and from it.

    Output is one sequence over all descriptors, in the order in which it was written. A
    bounded amount waits for its reader; then the command does, as at a full pipe. Output of a
    process object that nobody holds any more is dropped.
    """

    @property
    def pid(self) -> int:
        """Of the process that was started."""

    def now(self) -> float:
        """The time in seconds by the clock that measures every `timeout_seconds` below. Whoever
        waits in several steps reckons with it."""

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """Everything that was written since the last call; waits until there is something.

        Empty when there will be no more: the process has ended, and what it printed was read.
        Raises `TimeoutError` when nothing came in time.
        """

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """Write to an input; waits while the command does not read.

        Returns how many bytes the input has taken: all of `data`, or fewer when
        `timeout_seconds` were over before (0 takes what there is room for, without waiting).
        Raises `CommandError` (EPIPE) if nobody will ever read it, EBADF if it was closed.
        """

    def close_input(self, fd: int = STDIN) -> None:
        """The end of an input; idempotent."""

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """Wait for the end of the process, and not for its output to be read. None when it
        still runs after `timeout_seconds` (0 asks without waiting)."""

    def kill(self) -> None:
        """End every process of the command; idempotent."""


class BackendTerminal(Protocol):
    """A program on a pseudo-terminal: what a terminal emulator holds."""

    def read(self, count: int = 65536) -> bytes:
        """What the terminal shows next, at most `count` bytes; waits until there is something.
        Empty when the program has ended, and all was read. One thread reads at a time."""

    def write(self, data: bytes) -> None:
        """Type at the keyboard."""

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """The program's exit code; None if it still runs after `timeout_seconds`."""

    def close(self) -> None:
        """Hang up."""


class Backend(Protocol):
    """One sandbox, as the API needs it."""

    variables: dict[str, str]
    """The environment variables that the sandbox's user has chosen: those of `SandboxOptions.env`
    when it is new. `Environment` changes them, and puts them into every `CommandRequest`."""
    cwd: str
    """Where commands start unless they are told otherwise."""

    # Commands.

    def run(self, request: CommandRequest, cancellation: Cancellation | None = None) -> Completed:
        """Run a command to its end. Raises `CommandError` if it cannot be started."""

    def start(self, request: CommandRequest) -> BackendProcess:
        """Start a command, and return while it runs."""

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """Start a command on a new terminal, which is its standard input and output. Of `request`
        only `argv`, `environ` and `cwd` count."""

    def processes(self) -> list[ProcessInfo]:
        """The processes that there are, by pid."""

    def signal(self, pid: int, number: int) -> None:
        """Send a signal. Raises `CommandError`: ESRCH for a process that is not there."""

    def usage(self) -> Usage:
        """What the sandbox uses of its limits."""

    # Files.

    def read_file(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """`count` bytes of a regular file from `offset` on, or all of them; fewer at its end."""

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Make or replace a regular file, in one step: a failure leaves what was there.

        Missing directories are made. Without `mode` an existing file keeps its own.
        """

    def append_file(self, path: str, data: bytes) -> None:
        """Add to the end of a regular file, which is made if it is missing, with the
        directories above it. All of `data`, or nothing."""

    def list_directory(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """The entries of a directory, or of the tree below it, in the order of their paths.
        Symbolic links are not followed below `path`."""

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        """Make a directory. With `parents` also those above it, and an existing one is fine."""

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty directory, with `recursive` a whole tree."""

    def rename(self, source: str, target: str) -> None:
        """As rename(2): a file or an empty directory at `target` is replaced."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file, a link or a whole tree to the path `target`, with modes.

        Missing directories are made. A file at `target` is replaced; a directory there gets
        the entries of a directory `source`.
        """

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """What is at a path."""

    def chmod(self, path: str, mode: int) -> None:
        """Set permission bits; a symbolic link is followed."""

    def symlink(self, target: str, path: str) -> None:
        """Make a symbolic link that holds `target`, which need not exist."""

    def read_link(self, path: str) -> str:
        """What a symbolic link holds."""

    def export_tar(self, path: str) -> Iterator[bytes]:
        """The tree below `path`, or one file, as pieces of a tar archive (PAX, not compressed)
        with names relative to `path`."""

    def import_tar(self, path: str, pieces: Iterable[bytes]) -> None:
        """Unpack a tar archive, plain or compressed by gzip, below the directory `path`, which
        is made. Nothing is written outside `path`, whatever names and links the archive has."""

    # State at rest.

    def save_disk(self, stream: IO[bytes]) -> None:
        """Write a disk image: how the files differ from those of a new sandbox. Commands may run
        meanwhile: the files are saved as they were at one moment. Works after `close`, too."""

    def load_disk(self, stream: IO[bytes]) -> None:
        """Make the files of a new sandbox those that `save_disk` has written. Raises
        `DiskImageError` for anything else, and if they do not fit."""

    # Life.

    def close(self) -> None:
        """End every process and drop every file."""
