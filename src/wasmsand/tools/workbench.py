"""What the implementations of all tools share: the sandbox, limits, and notes for the model.

Rules: text for a model is at most `output_limit` characters long; what is cut is saved in a file of
the sandbox.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools.background import BackgroundCommands
from wasmsand.tools.live_sessions import LiveSessions
from wasmsand.tools.output import SavedOutputs, head_and_tail


class Killable(Protocol):
    """A command or an interpreter that a tool waits for."""

    def kill(self) -> object:
        """End it; idempotent."""


class CommandObserver(Protocol):
    """Watches a command while a tool waits for it. Its methods are called on the tool's thread."""

    def started(self, command: Killable) -> None:
        """The command has started; it can be killed."""

    def printed(self, text: str) -> None:
        """The command has printed `text`, on either stream."""


class CancellableCall:
    """A `CommandObserver` that can end what a call waits for. The tool's thread starts it, another
    thread cancels it; a lock guards what both change. A command that starts after the cancellation
    is killed at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._command: Killable | None = None

    def started(self, command: Killable) -> None:
        """See `CommandObserver`."""
        with self._lock:
            self._command = command
            cancelled = self._cancelled
        if cancelled:
            command.kill()

    def printed(self, text: str) -> None:
        """See `CommandObserver`."""

    def cancel(self) -> None:
        """Kill the command, now or when it starts."""
        with self._lock:
            self._cancelled = True
            command = self._command
        if command is not None:
            command.kill()


@dataclass(frozen=True, slots=True)
class Workbench:
    """What all tools of one sandbox share."""

    sandbox: Sandbox
    outputs: SavedOutputs
    live: LiveSessions
    background: BackgroundCommands
    output_limit: int
    """Most characters of one text for the model."""
    observer: CommandObserver | None = None
    with_images: bool = False
    """Whether results contain images; otherwise images are saved as files."""


def shortened(bench: Workbench, text: str, content: bytes, kind: str) -> str:
    """Text for the model; if it is too long, the whole of it is saved in a file."""
    if len(text) <= bench.output_limit:
        return text
    path = bench.outputs.save(content, kind)
    where = f"the whole output is in {path}" if path else "not saved: the file system is full"
    return head_and_tail(text, bench.output_limit, where)
