"""What the implementations of all tools share: the sandbox, limits, and notes for the model.

Rules: text for a model is at most `output_limit` characters long; what is cut is saved in a file of
the sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wasmsand.sdk.results import CommandResult, PythonResult
from wasmsand.sdk.sandbox import Sandbox
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


@dataclass(frozen=True, slots=True)
class Workbench:
    """What all tools of one sandbox share."""

    sandbox: Sandbox
    outputs: SavedOutputs
    output_limit: int
    """Most characters of one text for the model."""
    observer: CommandObserver | None = None
    with_images: bool = False
    """Whether results contain images; otherwise images are saved as files."""


def note_of(result: CommandResult | PythonResult) -> str | None:
    """A note for the model if the sandbox ended the command."""
    if result.truncated:
        return "killed: the command printed more than the sandbox's max_output_bytes"
    if result.timed_out:
        return "killed: the command timed out; set a longer timeout_ms if it needs more time"
    return None


def shortened(bench: Workbench, text: str, content: bytes, kind: str) -> str:
    """Text for the model; if it is too long, the whole of it is saved in a file."""
    if len(text) <= bench.output_limit:
        return text
    path = bench.outputs.save(content, kind)
    where = f"the whole output is in {path}" if path else "not saved: the file system is full"
    return head_and_tail(text, bench.output_limit, where)
