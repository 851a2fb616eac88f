"""A client of `wasm-sandbox`: a process and its pipes."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any

from tests.wire.line_peer import SECONDS, LinePeer, ended_at_last

COMMAND = [sys.executable, "-m", "wasmsand", "line"]


class Peer(LinePeer):
    """A client that talks to one process."""

    def __init__(self, *options: str) -> None:
        super().__init__("line", *options)

    def ask(self, line: bytes | str | dict[str, object]) -> Any:
        """Send a line; returns the answer."""
        return self.exchange(line)

    def shell(self, command: str, **fields: object) -> Any:
        """Run a command, by default with a long time limit."""
        limit = {"time_limit_ms": SECONDS * 1000}
        return self.ask({"type": "shell", "command": command, "id": "sh", **limit, **fields})


def peer(*options: str) -> AbstractContextManager[Peer]:
    """A process that is always ended at the end."""
    return ended_at_last(Peer(*options))
