"""Types of JSON requests and responses.

Rules: a body that does not match its type, or has unknown fields, is refused before the
handler runs, and the message names the field. The OpenAPI document is generated from these
types and their docstrings. Dataclasses of the SDK (`FileInfo`, `ProcessInfo`, `Usage`) are
sent unchanged.

Bytes in JSON are sent as text if they are UTF-8, otherwise as base64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from wasmsand.http.message_types import (
    Descriptor,
    Milliseconds,
    Positive,
    RequestMessage,
    ResponseMessage,
    Seconds,
)
from wasmsand.http.network_messages import NetworkWanted, Rules
from wasmsand.sdk.command_builder import SandboxUser
from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface
from wasmsand.sdk.options import OPTIONS
from wasmsand.sdk.results import ProcessInfo

# Sandboxes.

Metadata = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=64)], Annotated[str, Meta(max_length=1024)]],
    Meta(max_length=32),
]

_FIELD_TYPES: Mapping[OptionKind, Any] = {
    OptionKind.COUNT: Positive,
    OptionKind.MILLISECONDS: Milliseconds | None,
    OptionKind.VARIABLES: dict[str, str],
    OptionKind.GUEST_DIRECTORY: str,
    OptionKind.PACKAGES: list[str] | Literal["all"],
    OptionKind.NETWORK: Rules | NetworkWanted | None,
}
"""The JSON type of each kind of option."""


def option_fields(table: Iterable[Option] = OPTIONS) -> list[tuple[str, Any, Any]]:
    """Name, type and default of each option that a client may set."""
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
    """Options of a sandbox. The defaults are those of `Sandbox`."""

    idle_seconds: Seconds | None = None
    """Kill the sandbox when it was unused for this long; null is the server's maximum."""
    lifetime_seconds: Seconds | None = None
    """Kill the sandbox at this age; null is the server's maximum."""
    metadata: Metadata = {}
    """Names and values for yourself, by which sandboxes can be listed."""
    snapshot: Annotated[str, Meta(max_length=255)] | None = None
    """The id of a snapshot of one of your sandboxes, from which to create this one. It has the
    options of that sandbox, so no other option may be given."""


class Accounting(ResponseMessage):
    """What a sandbox has used since the server, or its worker, started. The sums over a token's
    sandboxes are the token's metrics."""

    commands: int
    """Commands that have ended, of sessions too."""
    command_seconds: float
    """Their run time."""
    sandbox_seconds: float
    """How long the sandbox has been in memory."""


class SandboxState(ResponseMessage):
    """A sandbox."""

    id: str
    created_at: float
    """Seconds since 1970."""
    expires_in_seconds: float
    """Time until the server kills the sandbox if it is not used again."""
    cwd: str
    timeout_ms: float | None
    max_command_seconds: float
    """The longest timeout of a command."""
    state: Literal["running", "paused"]
    """A paused sandbox is on the server's disk; the next request that needs it resumes it."""
    metadata: dict[str, str]
    limits: dict[str, int]
    """The limits of the sandbox, such as `memory_limit_bytes`."""
    accounting: Accounting
    is_stored: bool
    """Whether the server has a store, so that the sandbox survives a restart of the server."""


class SandboxList(ResponseMessage):
    """The sandboxes of one token, oldest first."""

    sandboxes: list[SandboxState]


class Killed(ResponseMessage):
    """The sandbox was killed."""

    killed: bool = True


# Commands.


class RunCommand(RequestMessage):
    """A command: a bash script, or a program and its arguments."""

    command: str | list[str]
    env: dict[str, str] | None = None
    """Added to the sandbox's variables."""
    environ: dict[str, str] | None = None
    """The whole environment; not together with `env`."""
    cwd: str | None = None
    timeout_ms: Milliseconds | UnsetType | None = UNSET
    """Null is the server's maximum; if omitted, the sandbox's `timeout_ms` applies."""
    user: SandboxUser = "user"
    """As whom it runs; `root` is the sandbox's own root."""
    stdin: str | None = None
    stdin_base64: bytes | None = None


class SessionTag(RequestMessage):
    """Says that a command is the interpreter of a session that the client drives itself."""

    kind: Literal["shell", "python"]
    identity: Annotated[str, Meta(pattern="^[0-9A-Za-z_-]{1,64}$")]
    """A name by which clients know the session again."""


class StartCommand(RunCommand):
    """A command that runs in the background."""

    open_stdin: bool = False
    """Keep standard input open for `POST .../input`; not together with `stdin`."""
    inputs: Annotated[list[Descriptor], Meta(max_length=16)] = []
    """Additional descriptors that the client writes to."""
    outputs: Annotated[list[Descriptor], Meta(max_length=16)] = []
    """Additional descriptors that the client reads from, besides 1 and 2."""
    session: SessionTag | None = None
    """With this, the command is stored with its sandbox and does not keep it from being paused. For
    our own client: its interpreters follow a protocol that the server knows."""


class CommandEnd(ResponseMessage):
    """How a command ended."""

    exit_code: int
    timed_out: bool
    execution_time_ms: float
    notices: list[str]
    """What the sandbox did to the command: `out of memory (...); raise memory_limit_bytes`."""


class CommandOutcome(CommandEnd):
    """How a command ended, and its output."""

    truncated: bool
    stdout: str | UnsetType = UNSET
    stdout_base64: bytes | UnsetType = UNSET
    """Sent instead of `stdout` if the output is not UTF-8."""
    stderr: str | UnsetType = UNSET
    stderr_base64: bytes | UnsetType = UNSET


class OutputPiece(ResponseMessage):
    """What a command wrote to one descriptor: `text`, or `base64` if it is not UTF-8."""

    fd: int
    text: str | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET


class OutputBatch(ResponseMessage):
    """Output of a started command, in the order of the writes."""

    number: int
    """Send this as `after` in the next request."""
    pieces: list[OutputPiece]
    ended: bool
    """Whether the output has ended."""
    uncounted_ms: float = 0.0
    """How long the server has compiled programs of this sandbox. This time does not count against
    timeouts."""
    notices: list[str] | UnsetType = UNSET
    """What the sandbox did to the programs of a session, if anything. Other commands tell it when
    they end."""


class ReadOutput(RequestMessage):
    """Selects a batch of a started command's output."""

    after: Annotated[int, Meta(ge=0)] = 0
    """The number of the last batch that the client has received."""
    wait_ms: Annotated[float, Meta(ge=0)] = 0
    """How long to wait for output; at most 20,000."""


class WaitCommand(RequestMessage):
    """How long to wait for a command's end."""

    wait_ms: Annotated[float, Meta(ge=0)] = 0
    """At most 20,000."""


class CommandState(ResponseMessage):
    """A started command: `end` is null while it runs."""

    id: str
    pid: int
    end: CommandEnd | None
    batch: int
    """The number of the last batch of its output that was read."""


class StartedCommands(ResponseMessage):
    """The started commands that the server remembers."""

    commands: list[CommandState]


class InputDescriptor(RequestMessage):
    """Selects an input of a command."""

    fd: Descriptor = 0


class WriteInput(InputDescriptor):
    """Selects an input of a command, and how long to wait until the command reads."""

    wait_ms: Annotated[float, Meta(ge=0)] = 20_000
    """At most 20,000."""


class SendSignal(RequestMessage):
    """A signal number, such as 15 for SIGTERM."""

    signal: Annotated[int, Meta(ge=0, le=64)]


class KilledProcess(ResponseMessage):
    """Whether there was such a process."""

    killed: bool


class ProcessList(ResponseMessage):
    """The processes of a sandbox."""

    processes: list[ProcessInfo]


# Variables.


class Variables(ResponseMessage):
    """All variables that a command gets."""

    env: dict[str, str]
    set: dict[str, str]
    """Those that were set, without the built-in ones."""


class ChangeVariables(RequestMessage):
    """Variables to set, and names whose setting is removed; a default then applies again."""

    set: dict[str, str] = {}
    unset: list[str] = []


class Done(ResponseMessage):
    """The request succeeded."""

    ok: bool = True


class Written(ResponseMessage):
    """How many bytes an input has accepted: fewer than sent if the command does not read."""

    ok: bool = True
    written: int = 0


class Health(ResponseMessage):
    """Whether the server accepts requests."""

    status: str
    version: str


class Failure(ResponseMessage):
    """A description of the error."""

    code: str
    errno: str | None
    message: str
    path: str | None


class FailureBody(ResponseMessage):
    """The body of every error response."""

    error: Failure


def piece(fd: int, data: bytes) -> OutputPiece:
    """`data`, which was written to `fd`, as text or base64."""
    text, binary = text_or_base64(data)
    return OutputPiece(fd=fd, text=text, base64=binary)


def text_or_base64(data: bytes) -> tuple[str | UnsetType, bytes | UnsetType]:
    """`data` as text if it is UTF-8, otherwise as base64; the other value is `UNSET`."""
    try:
        return data.decode("utf-8"), UNSET
    except UnicodeDecodeError:
        return UNSET, data
