"""What the API returns: plain, immutable values.

Rules: text is UTF-8 with invalid bytes replaced; the exact bytes are always beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What one command did."""

    stdout: str
    """Standard output as text; invalid UTF-8 is replaced (see `stdout_bytes`)."""
    stderr: str
    exit_code: int
    """0-255; 128 plus the signal's number when a signal ended it; 124 on a timeout."""
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
    """Its class, with the module unless that is `builtins` or `__main__`: `ValueError`,
    `json.decoder.JSONDecodeError`; `InterpreterEnded` when there was no exception, because the
    interpreter itself ended."""
    message: str
    traceback: str
    """As Python prints it, without the frames that are not the program's."""


@dataclass(frozen=True, slots=True)
class PythonResult:
    """What one call of `PythonSession.run` did."""

    stdout: str
    """Standard output as text; invalid UTF-8 is replaced."""
    stderr: str
    value: Any
    """The value of the expression at the end, if it is made of None, bool, int, float, str, list
    and dict with str as keys; otherwise None, and `repr` tells what it was."""
    repr: str | None
    """`repr()` of that value; None if there is none, as in an interactive interpreter."""
    error: PythonError | None
    """What ended the program; None if nothing did."""
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
    """Permission bits, as 0o644."""
    mtime_ns: int = 0
    """When the content last changed, in nanoseconds since 1970."""
    path: str = ""
    """The absolute path that it was found by."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process of a sandbox."""

    pid: int
    parent_pid: int
    command_pid: int
    """The process that the host started, and that this one descends from (or is)."""
    argv: tuple[str, ...]
    state: str
    """One letter, as `ps` shows it: R running, S sleeping, T stopped, Z ended."""
    memory_bytes: int
    cpu_time_ms: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What a sandbox uses, each beside its limit."""

    fs_bytes: int
    fs_limit_bytes: int
    inodes: int
    max_inodes: int
    processes: int
    max_processes: int
    memory_bytes: int
    """Of the host's memory: programs, what the engine needs for them, and `kernel_bytes`."""
    memory_limit_bytes: int
    cpu_time_ms: float
    """Of all processes since the sandbox was created."""
    kernel_bytes: int
    """Open files, sockets and other kernel objects, and data that waits in pipes and sockets."""
