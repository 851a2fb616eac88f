"""A server as users start it: `wasmsand serve` in a process of its own, on a free port.

It also has a client of plain requests, which shows what is on the wire.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
_END_SECONDS = 180
_ANSWER_SECONDS = 180


def write_tokens(path: Path, tokens: Mapping[str, Mapping[str, object]]) -> Path:
    """Write a file of tokens, by name; `token` is among the settings of each."""
    lines = []
    for name, settings in tokens.items():
        # TOML writes strings, numbers and booleans as JSON does.
        fields = {"name": name, **settings}
        lines += ["[[token]]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]
    path.write_text("\n".join(lines))
    return path


class DidNotStart(Exception):
    """The server did not start; the message is what it printed."""


def _workers(options: Sequence[str]) -> list[str]:
    """How many workers a server has whose test does not say it."""
    chosen = {"--workers", "--tenant-workers"} & set(options)
    return [] if chosen else ["--workers", os.environ.get("WASMSAND_TEST_WORKERS", "1")]


class ServerProcess:
    """A running server; raises `DidNotStart` if it does not start."""

    def __init__(
        self,
        *options: str,
        environ: Mapping[str, str] | None = None,
        module: str = "wasmsand",
        stdout: IO[bytes] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "serve", "--port", "0", *_workers(options), *options],
            env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", **(environ or {})},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self._told_first = ""
        """What it printed before it began to serve."""
        while "serving " not in (line := self.process.stderr.readline()):
            self._told_first += line
            if not line:
                _, rest = self.process.communicate(timeout=_END_SECONDS)
                raise DidNotStart(self._told_first + rest)
        self.url = line.rpartition("serving ")[2].strip()

    def terminate(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and wait; returns the exit status and standard error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Wait for a server that was told to end; returns the exit status and standard error."""
        _, errors = self.process.communicate(timeout=_END_SECONDS)
        return self.process.returncode, self._told_first + errors


@contextmanager
def serving(*options: str, environ: Mapping[str, str] | None = None) -> Iterator[ServerProcess]:
    """A server, which is terminated at the end; the test fails if it printed errors."""
    server = ServerProcess(*options, environ=environ)
    try:
        yield server
    finally:
        status, errors = server.terminate()
    assert (status, errors) == (0, ""), f"status {status}: {errors}"


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, code and message of an error."""
        error = self.json["error"]
        assert set(error) - {"exit_status"} == {"code", "errno", "message", "path"}
        return self.status, error["code"], error["message"]


@dataclass
class Client:
    """Sends requests as they are written."""

    url: str
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        target: str,
        value: object = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request on a connection of its own; `value` is sent as JSON."""
        parts = urlsplit(self.url)
        sent = {**self.headers, **(headers or {})}
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if value is not None:
            body = json.dumps(value).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS
        )
        try:
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def create(self, **options: object) -> str:
        """Create a sandbox; returns its path."""
        answer = self.ask("POST", "/v1/sandboxes", options)
        assert answer.status == 201, answer
        return f"/v1/sandboxes/{answer.json['id']}"

    def run(self, sandbox: str, command: object, **options: object) -> Answer:
        """Run a command."""
        return self.ask("POST", f"{sandbox}/run", {"command": command, **options})


def events(body: bytes) -> list[tuple[str, Any]]:
    """The names and data of server-sent events, without comments."""
    found = []
    for block in body.decode("ascii").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            name, data = lines
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found
