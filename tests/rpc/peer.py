"""A client of `wasmsand rpc`, as plain as can be: a process and its pipes."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COMMAND = [sys.executable, "-m", "wasmsand", "rpc"]
SECONDS = 60
"""How long a test waits before it says that something hangs."""


class Peer:
    """The other side of one server process."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._ids = iter(range(1, 1_000_000))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, line: bytes | str) -> None:
        """Write one line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() if isinstance(line, str) else line)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next line, decoded; None at the end."""
        line = self._lines.get(timeout=SECONDS)
        return json.loads(line) if line else None

    def exchange(self, line: bytes | str) -> Any:
        """Send a line, return the response."""
        self.send(line)
        return self.receive()

    def call(self, method: str, **params: object) -> Any:
        """Call a method; the result. Fails the test if there is an error."""
        response = self.request(method, **params)
        assert "error" not in response, response
        return response["result"]

    def error(self, method: str, **params: object) -> Any:
        """Call a method that is to fail; the error."""
        response = self.request(method, **params)
        assert "result" not in response, response
        return response["error"]

    def request(self, method: str, **params: object) -> Any:
        """Call a method; the whole response."""
        number = next(self._ids)
        response = self.exchange(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        )
        assert response["id"] == number
        return response

    def create(self, **params: object) -> None:
        """Create the sandbox."""
        assert self.call("create", **{"wasmDir": None, **params}) == {"ok": True}

    def close_input(self) -> None:
        """No more requests."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """Wait for the server's end; its exit status. Nothing may be left to read."""
        status = self.process.wait(SECONDS)
        assert self._lines.get(timeout=SECONDS) == b""
        return status

    def stderr(self) -> str:
        """What the server, which has ended, wrote to standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@contextmanager
def peer(*options: str) -> Iterator[Peer]:
    """A server process, which is gone at the end, whatever happens."""
    running = Peer(*options)
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
