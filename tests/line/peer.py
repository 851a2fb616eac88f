"""A client of `wasm-sandbox`: a process and its pipes."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any

from tests.wire.line_peer import SECONDS, LinePeer, ended_at_last

COMMAND = [sys.executable, "-m", "wasmsand", "line"]


class Peer(LinePeer):
    """The other side of one process."""

    def __init__(self, *options: str) -> None:
        super().__init__("line", *options)

    def ask(self, line: bytes | str | dict[str, object]) -> Any:
        """Send a line, return the answer."""
        return self.exchange(line)

    def shell(self, command: str, **fields: object) -> Any:
        """Run a command, with plenty of time unless told otherwise."""
        limit = {"time_limit_ms": SECONDS * 1000}
        return self.ask({"type": "shell", "command": command, "id": "sh", **limit, **fields})


def peer(*options: str) -> AbstractContextManager[Peer]:
    """A process, which is gone at the end, whatever happens."""
    return ended_at_last(Peer(*options))
