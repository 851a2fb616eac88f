"""A client of a process that reads and writes lines of JSON.

Owns `LinePeer`, the base of the clients in each protocol's tests. Rules: a test never waits for
ever; the process is always ended at the end.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

SECONDS = 60
"""Seconds after which a test reports a hang."""


class LinePeer:
    """A process, and the lines sent to it."""

    seconds = SECONDS
    """How long this client waits for an answer."""

    def __init__(self, command: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wasmsand", command, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, line: bytes | str | dict[str, object]) -> None:
        """Write one line; an object is encoded."""
        assert self.process.stdin is not None
        if isinstance(line, dict):
            line = json.dumps(line)
        self.process.stdin.write(line.encode() if isinstance(line, str) else line)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next line, decoded; None at the end."""
        line = self._lines.get(timeout=self.seconds)
        return json.loads(line) if line else None

    def exchange(self, line: bytes | str | dict[str, object]) -> Any:
        """Send a line; returns the answer."""
        self.send(line)
        return self.receive()

    def close_input(self) -> None:
        """End the input: no more requests follow."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """Wait for the end; returns the exit status. No output may be left to read."""
        status = self.process.wait(self.seconds)
        assert self._lines.get(timeout=self.seconds) == b""
        return status

    def stderr(self) -> str:
        """The standard error of the ended process."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


AnyPeer = TypeVar("AnyPeer", bound=LinePeer)


@contextmanager
def ended_at_last(running: AnyPeer) -> Iterator[AnyPeer]:
    """A peer whose process is ended at the end."""
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                pass
