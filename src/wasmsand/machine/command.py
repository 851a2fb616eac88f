"""A command of the host: what it is given, what it printed, how it ended.

Owns the values that travel from the machine to every interface (`CommandRequest`, `Ended`,
`Completed`, `Output`), and `CapturedOutput`. Rules: output is cut at `max_output_bytes` in
`CapturedOutput.keep` and nowhere else; a notice (what the sandbox did to the command) travels in
`Ended.notices`, and `CapturedOutput.completed` alone adds the notices to standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from wasmsand.kernel.process.signals import Signal

STDIN, STDOUT, STDERR = 0, 1, 2
TIMEOUT_EXIT_CODE: Final = 124
"""What GNU `timeout` returns when the time is over."""
OUTPUT_LIMIT_EXIT_CODE: Final = 128 + Signal.SIGKILL


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A program to run: everything that it gets. A `str` may hold surrogate escapes."""

    argv: tuple[str, ...]
    """The program, found by the PATH of `environ` unless it has a slash, and its arguments."""
    environ: Mapping[str, str]
    """The whole environment."""
    cwd: str
    timeout_seconds: float | None = None
    """When every process of the command is killed."""
    stdin: bytes | None = b""
    """All of its standard input. None, for commands that are started only: the descriptor is a
    stream, which the host writes to."""
    extra_inputs: tuple[int, ...] = ()
    """For commands that are started: further descriptors that the host writes to."""
    extra_outputs: tuple[int, ...] = ()
    """For commands that are started: further descriptors that the host reads, beside 1 and 2."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    exit_code: int
    """0-255; 128 plus the signal's number if a signal ended it; 124 on a timeout."""
    timed_out: bool
    seconds: float
    notices: tuple[str, ...] = ()
    """What the sandbox did to the command, for its user: `out of memory (...); raise ...`."""


@dataclass(frozen=True, slots=True)
class Completed(Ended):
    """What a command that ran to its end left behind."""

    stdout: bytes = b""
    stderr: bytes = b""
    """With a line for each of the notices at its end."""
    truncated: bool = False
    """Whether output reached max_output_bytes, which ended the command."""

    @classmethod
    def of(cls, ended: Ended, stdout: bytes, stderr: bytes, truncated: bool) -> Completed:
        """The end of a command, with its output."""
        return cls(
            ended.exit_code,
            ended.timed_out,
            ended.seconds,
            ended.notices,
            stdout,
            stderr,
            truncated,
        )


class Output(NamedTuple):
    """What a command wrote to one of its output descriptors."""

    fd: int
    data: bytes


class CapturedOutput:
    """What a command has printed so far: two streams, each up to `limit` bytes."""

    __slots__ = ("_limit", "stderr", "stdout", "truncated")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.truncated = False
        """Whether there was more than the limit. Whoever captures ends the command then."""

    def keep(self, fd: int, data: bytes) -> bytes:
        """Add what was written to `fd`, and return the part that is within the limit."""
        kept = self.stdout if fd == STDOUT else self.stderr
        room = self._limit - len(kept)
        if len(data) > room:
            data = data[:room]
            self.truncated = True
        kept += data
        return data

    def completed(self, ended: Ended) -> Completed:
        """The result of the command, which ended so."""
        exit_code, timed_out, notices = ended.exit_code, ended.timed_out, ended.notices
        if self.truncated:
            exit_code, timed_out = OUTPUT_LIMIT_EXIT_CODE, False
            limit = self._limit
            notices += (
                f"output limit of {limit} bytes reached, command ended; raise max_output_bytes",
            )
        stderr = bytes(self.stderr)
        if notices:
            stderr += b"".join(f"wasmsand: {notice}\n".encode() for notice in notices)
        return Completed(
            exit_code,
            timed_out,
            ended.seconds,
            notices,
            bytes(self.stdout),
            stderr,
            self.truncated,
        )


def exit_code_of(status: int) -> int:
    """A wait status as a shell's `$?`."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8 & 0xFF


def guest_bytes(text: str) -> bytes:
    """The guest's bytes of a text; bytes that were not UTF-8 come back as they were."""
    return text.encode("utf-8", "surrogateescape")


def guest_environment(environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """The variables as a program gets them: `NAME=value`."""
    return tuple([guest_bytes(f"{name}={value}") for name, value in environ.items()])
