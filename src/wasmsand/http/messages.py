"""The types of what goes in and out, as JSON.

Rules: a body that does not fit its type is refused before a handler sees it, unknown
fields included, and the message names the field; the OpenAPI document is made from these
types, so what they say is what clients read. Values that the SDK returns as dataclasses
(`FileInfo`, `ProcessInfo`, `Usage`) go out as they are.

Bytes in JSON: text where they are UTF-8, base64 where they are not, never both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface
from wasmsand.sdk.options import OPTIONS
from wasmsand.sdk.results import FileInfo, ProcessInfo

Positive = Annotated[int, Meta(ge=1, le=2**53)]
Milliseconds = Annotated[float, Meta(gt=0, le=10**12)]
Seconds = Annotated[float, Meta(gt=0, le=10**9)]
Descriptor = Annotated[int, Meta(ge=0, le=1023)]
Path = Annotated[str, Meta(description="absolute, or relative to the sandbox's cwd")]


class RequestMessage(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something that a client sends: a body, or the parameters of a query."""


class ResponseMessage(msgspec.Struct, kw_only=True):
    """Something that the server answers."""


# Sandboxes.


_FIELD_TYPES: Mapping[OptionKind, Any] = {
    OptionKind.COUNT: Positive,
    OptionKind.MILLISECONDS: Milliseconds | None,
    OptionKind.VARIABLES: dict[str, str],
    OptionKind.GUEST_DIRECTORY: str,
}
"""What the values of an option are in JSON, by its kind."""


def option_fields(table: Iterable[Option] = OPTIONS) -> list[tuple[str, Any, Any]]:
    """The fields of options that a client may set: name, type, default."""
    return [
        (option.name, _FIELD_TYPES[option.kind] | UnsetType, UNSET)
        for option in table
        if SandboxInterface.HTTP in option.interfaces
    ]


if TYPE_CHECKING:
    _Options = RequestMessage
else:
    _Options = msgspec.defstruct("_Options", option_fields(), bases=(RequestMessage,), kw_only=True)


class CreateSandbox(_Options):
    """Options of a sandbox; what is left out has the default of `Sandbox`."""

    idle_seconds: Seconds | None = None
    """Kill it when nobody has used it for so long; null is the server's longest."""
    lifetime_seconds: Seconds | None = None
    """Kill it at this age; null is the server's longest."""


class SandboxState(ResponseMessage):
    """A sandbox that lives."""

    id: str
    created_at: float
    """Seconds since 1970."""
    expires_in_seconds: float
    """Until it is killed if nobody uses it any more."""
    cwd: str
    timeout_ms: float | None
    max_command_seconds: float
    """The longest time that a command may have."""


class SandboxList(ResponseMessage):
    """The sandboxes of one token."""

    sandboxes: list[SandboxState]


class Killed(ResponseMessage):
    """The sandbox is gone."""

    killed: bool = True


# Commands.


class RunCommand(RequestMessage):
    """A command: a script for bash, or a program and its arguments."""

    command: str | list[str]
    env: dict[str, str] | None = None
    """Added to the sandbox's variables."""
    environ: dict[str, str] | None = None
    """The whole environment instead; not together with `env`."""
    cwd: str | None = None
    timeout_ms: Milliseconds | UnsetType | None = UNSET
    """Null is as long as the server allows; left out it is the sandbox's own."""
    stdin: str | None = None
    stdin_base64: bytes | None = None


class StartCommand(RunCommand):
    """A command that goes on while the client does other things."""

    open_stdin: bool = False
    """Its standard input stays open for `POST .../input`; not together with `stdin`."""
    inputs: Annotated[list[Descriptor], Meta(max_length=16)] = []
    """Further descriptors that the client writes to."""
    outputs: Annotated[list[Descriptor], Meta(max_length=16)] = []
    """Further descriptors that the client reads from, beside 1 and 2."""


class CommandEnd(ResponseMessage):
    """How a command ended."""

    exit_code: int
    timed_out: bool
    execution_time_ms: float
    notices: list[str]
    """What the sandbox did to it: `out of memory (...); raise memory_limit_bytes`."""


class CommandOutcome(CommandEnd):
    """What a command that ran to its end left behind."""

    truncated: bool
    stdout: str | UnsetType = UNSET
    stdout_base64: bytes | UnsetType = UNSET
    """Instead of `stdout`, if the output is not UTF-8."""
    stderr: str | UnsetType = UNSET
    stderr_base64: bytes | UnsetType = UNSET


class OutputPiece(ResponseMessage):
    """What a command wrote to one descriptor: `text`, or `base64` if that is not UTF-8."""

    fd: int
    text: str | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET


class OutputBatch(ResponseMessage):
    """Output of a started command, in the order in which it was written."""

    number: int
    """What to give as `after` in the next request."""
    pieces: list[OutputPiece]
    ended: bool
    """Whether there will be no more."""


class ReadOutput(RequestMessage):
    """Which output of a started command."""

    after: Annotated[int, Meta(ge=0)] = 0
    """The number of the last batch that was received; it is given out again otherwise."""
    wait_ms: Annotated[float, Meta(ge=0)] = 0
    """How long to wait until there is some; at most 20,000."""


class WaitCommand(RequestMessage):
    """How long to wait for a command's end."""

    wait_ms: Annotated[float, Meta(ge=0)] = 0
    """At most 20,000."""


class CommandState(ResponseMessage):
    """A started command: `end` is null while it runs."""

    id: str
    pid: int
    end: CommandEnd | None


class StartedCommands(ResponseMessage):
    """The commands that were started and not forgotten."""

    commands: list[CommandState]


class InputDescriptor(RequestMessage):
    """Which of a command's inputs."""

    fd: Descriptor = 0


class WriteInput(InputDescriptor):
    """Which of a command's inputs, and how long to wait while the command does not read."""

    wait_ms: Annotated[float, Meta(ge=0)] = 20_000
    """At most 20,000."""


class SendSignal(RequestMessage):
    """A signal by its number, as 15 for SIGTERM."""

    signal: Annotated[int, Meta(ge=0, le=64)]


class ProcessList(ResponseMessage):
    """The processes of a sandbox."""

    processes: list[ProcessInfo]


# Files.


class FilePath(RequestMessage):
    """One file."""

    path: Path


class ReadFile(FilePath):
    """A file, or a part of it."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    count: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class WriteFile(FilePath):
    """Where the body goes."""

    mode: Annotated[int, Meta(ge=0, le=0o7777)] | None = None
    """Permission bits as a decimal number; null keeps those of an existing file."""


class StatFile(FilePath):
    """One file or link."""

    follow: bool = True


class ListDirectory(RequestMessage):
    """One directory."""

    path: Path = "."
    recursive: bool = False


class FileList(ResponseMessage):
    """Entries of a directory."""

    entries: list[FileInfo]


class RemoveFile(FilePath):
    """What to remove."""

    recursive: bool = False


class MakeDirectory(FilePath):
    """A directory; with `parents` those above it too, and an existing one is fine."""

    parents: bool = True


class TwoPaths(RequestMessage):
    """From where to where."""

    source: Path
    target: Path


class ChangeMode(FilePath):
    """Permission bits as a decimal number."""

    mode: Annotated[int, Meta(ge=0, le=0o7777)]


class MakeLink(FilePath):
    """A symbolic link at `path` that holds `target`."""

    target: str


class LinkTarget(ResponseMessage):
    """What a symbolic link holds."""

    target: str


# Variables.


class Variables(ResponseMessage):
    """Every variable that a command would see."""

    env: dict[str, str]


class ChangeVariables(RequestMessage):
    """Variables to set, and variables whose setting to forget."""

    set: dict[str, str] = {}
    unset: list[str] = []


class Done(ResponseMessage):
    """It was done."""

    ok: bool = True


class Written(ResponseMessage):
    """How many bytes an input has taken: fewer than were sent if the command did not read."""

    ok: bool = True
    written: int = 0


class Health(ResponseMessage):
    """Whether the server takes requests."""

    status: str
    version: str


class Failure(ResponseMessage):
    """What is wrong."""

    code: str
    errno: str | None
    message: str
    path: str | None


class FailureBody(ResponseMessage):
    """The body of every answer that is an error."""

    error: Failure


def piece(fd: int, data: bytes) -> OutputPiece:
    """What was written to `fd`, as text if it is."""
    text, binary = text_or_base64(data)
    return OutputPiece(fd=fd, text=text, base64=binary)


def text_or_base64(data: bytes) -> tuple[str | UnsetType, bytes | UnsetType]:
    """`data` for two fields of which one is sent."""
    try:
        return data.decode("utf-8"), UNSET
    except UnicodeDecodeError:
        return UNSET, data
