"""A command started by the host: its input, its output, how it ended.

Owns the values that travel from the machine to every interface (`CommandRequest`, `Ended`,
`Completed`, `Output`), and `CapturedOutput`. Rules: output is cut at `max_output_bytes` in
`CapturedOutput.keep` and nowhere else; a notice (something that the sandbox did to the command)
travels in `Ended.notices`, and only `CapturedOutput.completed` adds notices to standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

STDIN, STDOUT, STDERR = 0, 1, 2
TIMEOUT_EXIT_CODE: Final = 124
"""The exit code of GNU `timeout` when the time is up."""
DEFAULT_USER: Final = "user"
ROOT_USER: Final = "root"
"""The sandbox's own root, who may change every file of the sandbox. All limits apply to it."""
OUTPUT_LIMIT_EXIT_CODE: Final = 128 + 9
"""As if SIGKILL had ended the command."""


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A program to run and everything that it gets. A `str` may hold surrogate escapes."""

    argv: tuple[str, ...]
    """The program and its arguments. Without a slash, the program is searched in the PATH of
    `environ`."""
    environ: Mapping[str, str]
    """The complete environment."""
    cwd: str
    timeout_seconds: float | None = None
    """After this time, every process of the command is killed."""
    stdin: bytes | None = b""
    """The whole standard input. None (only for commands that are started, not run): standard input
    is a stream to which the host writes."""
    extra_inputs: tuple[int, ...] = ()
    """For started commands: further descriptors to which the host writes."""
    extra_outputs: tuple[int, ...] = ()
    """For started commands: further descriptors, beside 1 and 2, from which the host reads."""
    user: str = DEFAULT_USER
    """As whom it runs: `user`, or `root` of the sandbox."""
    session: tuple[str, str] | None = None
    """If the command is the interpreter of a session: the session's kind and identity. A server
    needs them to store the session, and to list it for other clients."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    exit_code: int
    """0-255; 128 plus the signal's number if a signal ended it; 124 on a timeout."""
    timed_out: bool
    seconds: float
    notices: tuple[str, ...] = ()
    """What the sandbox did to the command: `out of memory (...); raise ...`."""


@dataclass(frozen=True, slots=True)
class Completed(Ended):
    """The result of a command that ran to its end."""

    stdout: bytes = b""
    stderr: bytes = b""
    """With one line per notice at the end."""
    truncated: bool = False
    """Whether the output reached max_output_bytes, which ended the command."""

    @classmethod
    def of(cls, ended: Ended, stdout: bytes, stderr: bytes, truncated: bool) -> Completed:
        """How the command ended, with its output."""
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
        """Whether there was more output than the limit. The caller then ends the command."""

    def keep(self, fd: int, data: bytes) -> bytes:
        """Add what was written to `fd`; return the part within the limit."""
        kept = self.stdout if fd == STDOUT else self.stderr
        room = self._limit - len(kept)
        if len(data) > room:
            data = data[:room]
            self.truncated = True
        kept += data
        return data

    def completed(self, ended: Ended) -> Completed:
        """The command's result, given how it ended."""
        exit_code, timed_out, notices = ended.exit_code, ended.timed_out, ended.notices
        if self.truncated:
            exit_code, timed_out = OUTPUT_LIMIT_EXIT_CODE, False
            limit = self._limit
            notices += (
                f"output limit of {limit} bytes reached, command ended; raise max_output_bytes",
            )
        stderr = bytes(self.stderr)
        if notices:
            stderr += b"".join([f"wasmsand: {notice}\n".encode() for notice in notices])
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
    """Encode text for the guest; surrogate escapes become their original bytes again."""
    return text.encode("utf-8", "surrogateescape")


def guest_environment(environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """Environment variables as `NAME=value` strings."""
    return tuple([guest_bytes(f"{name}={value}") for name, value in environ.items()])
