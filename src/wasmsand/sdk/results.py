"""What the API returns: plain, immutable values.

Rules: text is UTF-8 with invalid bytes replaced; the exact bytes are always beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of one command."""

    stdout: str
    """Standard output as text; invalid UTF-8 is replaced (see `stdout_bytes`)."""
    stderr: str
    exit_code: int
    """0 to 255; 128 plus the signal's number if a signal ended the command; 124 on a timeout."""
    execution_time_ms: float
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)
    timed_out: bool = False
    truncated: bool = False
    """Whether output was cut at `max_output_bytes`."""


@dataclass(frozen=True, slots=True)
class PythonError:
    """An exception that ended a program."""

    type: str
    """The name of its class, with the module unless that is `builtins` or `__main__`: `ValueError`,
    `json.decoder.JSONDecodeError`. `InterpreterEnded` if there was no exception because the
    interpreter itself ended."""
    message: str
    traceback: str
    """As Python prints it, with only the frames of the program."""


@dataclass(frozen=True, slots=True)
class PythonResult:
    """The result of one call of `PythonSession.run`."""

    stdout: str
    """Standard output as text; invalid UTF-8 is replaced."""
    stderr: str
    value: Any
    """The value of the last expression, if it consists of None, bool, int, float, str, list, and
    dict with str keys; otherwise None, and `repr` describes the value."""
    repr: str | None
    """`repr()` of the value; None if there is no value, as in an interactive interpreter."""
    error: PythonError | None
    """The exception that ended the program, or None."""
    execution_time_ms: float
    timed_out: bool = False
    truncated: bool = False
    """Whether output was cut at `max_output_bytes`."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file, directory or other entry of the file system."""

    name: str
    type: str
    """`"file"`, `"dir"`, `"symlink"`, `"fifo"`, `"socket"` or `"device"`."""
    size: int
    """Bytes; 0 for a directory."""
    mode: int = 0
    """Permission bits, for example 0o644."""
    mtime_ns: int = 0
    """When the content last changed, in nanoseconds since 1970."""
    path: str = ""
    """The absolute path under which it was found."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process of a sandbox."""

    pid: int
    parent_pid: int
    command_pid: int
    """The process that the host started: this one or its ancestor."""
    argv: tuple[str, ...]
    state: str
    """One letter, as `ps` shows it: R running, S sleeping, T stopped, Z ended."""
    memory_bytes: int
    cpu_time_ms: float


@dataclass(frozen=True, slots=True)
class PackageInfo:
    """One Python package."""

    name: str
    """Its normalised name, for example `scikit-learn`."""
    version: str
    location: str
    """The directory of the sandbox that has its files."""
    summary: str = ""
    native: bool = False
    """Whether it has native code, and so needs the full interpreter."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a sandbox uses, each value beside its limit."""

    fs_bytes: int
    fs_limit_bytes: int
    inodes: int
    max_inodes: int
    processes: int
    max_processes: int
    memory_bytes: int
    """Host memory of the programs, of the engine's data for them, and `kernel_bytes`."""
    memory_limit_bytes: int
    cpu_time_ms: float
    """CPU time of all processes since the sandbox was created."""
    kernel_bytes: int
    """Memory of open files, sockets and other kernel objects, and of data queued in pipes and
    sockets."""
