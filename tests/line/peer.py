"""A client of `wasm-sandbox`: a process and its pipes.

Rules: the same tests run in every mode. An emulator is slower, so a client of v86 mode gives
commands more time (`limit`) and waits longer.
"""

from __future__ import annotations

import itertools
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.wire.line_peer import SECONDS, LinePeer, ended_at_last

COMMAND = [sys.executable, "-m", "wasmsand", "line"]
_SLOWER = {"simple": 1, "v86": 5}


class Peer(LinePeer):
    """A client that talks to one process."""

    def __init__(self, *options: str, mode: str = "simple") -> None:
        self.mode = mode
        self.seconds = SECONDS * _SLOWER[mode]
        super().__init__("line", *options)

    def limit(self, milliseconds: int) -> int:
        """A time limit that gives a command the same chances in this mode."""
        return milliseconds * _SLOWER[self.mode]

    def ask(self, line: bytes | str | dict[str, object]) -> Any:
        """Send a line; returns the answer."""
        return self.exchange(line)

    def shell(self, command: str, **fields: object) -> Any:
        """Run a command, by default with a long time limit."""
        limit = {"time_limit_ms": self.limit(SECONDS * 1000)}
        return self.ask({"type": "shell", "command": command, "id": "sh", **limit, **fields})


class PeerMaker:
    """Starts processes in one mode."""

    def __init__(self, mode: str, folder: Path) -> None:
        self.mode = mode
        self._folder = folder
        self._numbers = itertools.count()

    def words(self, *options: str) -> list[str]:
        """The options that choose the mode, and others."""
        if self.mode == "simple":
            return list(options)
        if "--disk-image" not in options:
            disk = self._folder / f"{next(self._numbers)}.img"
            options = (*options, "--disk-image", str(disk))
        return ["--mode", self.mode, *options]

    def __call__(self, *options: str) -> AbstractContextManager[Peer]:
        """A process that is always ended at the end."""
        return ended_at_last(Peer(*self.words(*options), mode=self.mode))
