"""Messages of a terminal's WebSocket, except for its bytes. Rules: see `messages`.

A client's text message is one of `TerminalOrder`, told apart by `type`; the first one is
`open`. Binary messages are keys and output.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from wasmsand.http.message_types import RequestMessage
from wasmsand.sdk.terminal import COLUMNS, ROWS

Size = Annotated[int, Meta(ge=1, le=65535)]


class OpenTerminal(RequestMessage, tag_field="type", tag="open"):
    """Start a program on a new terminal."""

    command: str | list[str] | None = None
    """A script for bash, or a program and its arguments; null is an interactive bash."""
    cols: Size = COLUMNS
    rows: Size = ROWS
    env: dict[str, str] | None = None
    """Added to the sandbox's variables."""
    environ: dict[str, str] | None = None
    """All variables, instead of `env`."""
    cwd: str | None = None
    user: Literal["user", "root"] = "user"
    window: Annotated[int, Meta(ge=1, le=1024 * 1024)] | None = None
    """Bytes of output that the server sends before it waits for an `ack`; null: it sends as fast as
    the connection takes them."""


class ResizeTerminal(RequestMessage, tag_field="type", tag="resize"):
    """Change the size of the window."""

    cols: Size
    rows: Size


class AckOutput(RequestMessage, tag_field="type", tag="ack"):
    """So many more bytes of output were used."""

    bytes: Annotated[int, Meta(ge=1)]


class KillTerminal(RequestMessage, tag_field="type", tag="kill"):
    """End every process of the terminal."""


class HangUpTerminal(RequestMessage, tag_field="type", tag="hangup"):
    """Hang up; the server still reports the exit."""


TerminalOrder = OpenTerminal | ResizeTerminal | AckOutput | KillTerminal | HangUpTerminal
