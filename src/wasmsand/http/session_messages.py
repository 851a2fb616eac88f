"""Types of JSON requests and responses about sessions. Rules: see `messages`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from wasmsand.http.message_types import Milliseconds, RequestMessage, ResponseMessage
from wasmsand.sdk.command_builder import SandboxUser


class OpenPython(RequestMessage):
    """A Python session."""

    env: dict[str, str] | None = None
    """Added to the sandbox's variables."""
    cwd: str | None = None
    stdin: str = ""
    """The interpreter's standard input."""
    user: SandboxUser = "user"
    """As whom it runs; `root` is the sandbox's own root."""


class SessionOpened(ResponseMessage):
    """An open session."""

    id: str
    pid: int


class OpenShell(RequestMessage):
    """A shell session."""

    env: dict[str, str] | None = None
    """Added to the sandbox's variables."""
    cwd: str | None = None
    user: SandboxUser = "user"
    """As whom it runs; `root` is the sandbox's own root."""


class RunShell(RequestMessage):
    """A script for a shell session."""

    command: str
    timeout_ms: Milliseconds | UnsetType | None = UNSET
    """Null is the server's maximum; if omitted, the sandbox's `timeout_ms` applies."""
    stdin: str | None = None
    stdin_base64: bytes | None = None


class RunPython(RequestMessage):
    """Code for a Python session, as a cell of a notebook."""

    code: str
    timeout_ms: Milliseconds | UnsetType | None = UNSET
    """Null is the server's maximum; if omitted, the sandbox's `timeout_ms` applies."""
    inputs: Annotated[list[str], Meta(max_length=1000)] | None = None
    """Answers to the program's `input()`, in order. When there are no more, it raises EOFError."""


class PythonFailure(ResponseMessage):
    """The exception that ended the code."""

    type: str
    message: str
    traceback: str


class PythonItem(ResponseMessage):
    """Something that the code has displayed, or its value."""

    data: dict[str, Any]
    """The forms by MIME type, as notebooks store them: text, base64 for binary data, JSON values
    for `application/json`."""
    metadata: dict[str, Any]
    is_main: bool
    """Whether this is the value of the last expression."""
    display_id: str | None


class PythonEnd(ResponseMessage):
    """How code ended."""

    value: Any
    """The value of the last expression, if JSON can represent it without a change."""
    has_value: bool
    """Whether `value` is the value of the last expression; otherwise `repr` describes it."""
    repr: str | None
    error: PythonFailure | None
    execution_time_ms: float
    timed_out: bool
    truncated: bool


class PythonOutcome(PythonEnd):
    """How code ended, its output, and everything that it displayed, in order."""

    stdout: str
    stderr: str
    results: list[PythonItem]
