"""A started command in a server's sandbox, as the SDK's `BackendProcess`.

Rules: the server waits, for a bounded time per request; it keeps a batch of output until the
client asks for the next one.
"""

from __future__ import annotations

import os
import threading
import weakref
from _thread import start_new_thread
from typing import Any

from wasmsand.http.answers import ended_of, exact_bytes, object_of
from wasmsand.http.failures import BATCH_GONE
from wasmsand.http.transport import Transport
from wasmsand.sdk.backend import STDIN, Ended, Output
from wasmsand.sdk.errors import ForkedError, SandboxError, ServerError
from wasmsand.sdk.polled_process import PolledProcess


class HttpProcess(PolledProcess):
    """A command on a server."""

    def __init__(
        self, transport: Transport, path: str, pid: int, *, is_kept: bool = False, batch: int = 0
    ) -> None:
        """`is_kept`: the server remembers the command when nobody refers to it here; `batch` is the
        number of the last batch of its output."""
        self._transport = transport
        self._path = path
        self._pid = pid
        self._reading = threading.Lock()
        # Guarded by the lock:
        self._number = batch
        self._notices: list[str] = []
        self._owner = os.getpid()
        self._is_kept = is_kept
        if not is_kept:
            weakref.finalize(self, _forget, transport, path, self._owner).atexit = False

    @property
    def path(self) -> str:
        """The path of its requests."""
        return self._path

    @property
    def id(self) -> str:
        """Its id on the server."""
        return self._path.rpartition("/")[2]

    @property
    def pid(self) -> int:
        """See `BackendProcess`."""
        return self._pid

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        if os.getpid() != self._owner:  # two readers would steal each other's output
            raise ForkedError.here("command")
        with self._reading:
            return super().read(timeout_seconds)

    def _read_for(self, seconds: float) -> tuple[Output, ...] | None:
        query: dict[str, object] = {"wait_ms": seconds * 1000}
        try:
            batch = self._get("/output", after=self._number, **query)
        except ServerError as error:
            if error.code != BATCH_GONE or not self._is_kept:
                raise
            # Another client has used the session meanwhile: go on after what it has read.
            self._number = int(self._get("")["batch"])
            batch = self._get("/output", after=self._number, **query)
        self._uncounted_seconds = batch.get("uncounted_ms", 0.0) / 1000
        is_fresh = batch["number"] != self._number
        if is_fresh:
            self._notices += batch.get("notices", ())
        self._number = batch["number"]
        if not is_fresh and not batch["ended"]:
            return None
        return tuple(
            Output(piece["fd"], exact_bytes(piece.get("text"), piece.get("base64")))
            for piece in batch["pieces"]
        )

    def _write_for(self, data: bytes, fd: int, seconds: float) -> int:
        query = {"fd": fd, "wait_ms": seconds * 1000}
        answer = self._transport.ask("POST", f"{self._path}/input", query=query, content=data)
        return int(object_of(answer)["written"])

    def _wait_for(self, seconds: float) -> Ended | None:
        end = self._get("", wait_ms=seconds * 1000)["end"]
        return None if end is None else ended_of(end)

    def take_notices(self) -> tuple[str, ...]:
        """See `BackendProcess`. They came with the output."""
        with self._reading:
            taken, self._notices = tuple(self._notices), []
            return taken

    def close_input(self, fd: int = STDIN) -> None:
        """See `BackendProcess`."""
        self._transport.ask("DELETE", f"{self._path}/input", query={"fd": fd})

    def kill(self) -> None:
        """See `BackendProcess`."""
        self._transport.ask("POST", f"{self._path}/kill")

    def _get(self, part: str, **query: object) -> dict[str, Any]:
        return object_of(self._transport.ask("GET", self._path + part, query=query))


def _forget(transport: Transport, path: str, owner: int) -> None:
    """Forget a command that is no longer referenced, on a thread: garbage collection must not
    wait for the network. In a forked process, do nothing: the command belongs to the parent."""
    if os.getpid() != owner:
        return

    def ask() -> None:
        try:
            transport.ask("DELETE", path)
        except SandboxError:
            pass  # the sandbox has ended, and the command with it

    start_new_thread(ask, ())
