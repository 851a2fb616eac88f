"""The loop of `wasm-sandbox`: reads requests, sends answers, runs several commands at a time.

Rules: requests begin in the order of arrival and are answered when they finish. Commands run
concurrently. A request begins when the command before it has ended or has run alone for
the sandbox's head start, so a client may send several short commands at once; a client that depends
on their order must wait for each answer. `reset` waits until every command before it has ended.
At the end of standard input the server answers all requests and ends.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from typing import Final

from wasmsand.line.requests import (
    TYPE_OF,
    BadRequest,
    LineRequest,
    ResetRequest,
    ShellRequest,
    request_of,
)
from wasmsand.line.sandbox import Answer, LineSandbox, refusal
from wasmsand.wire.channel import LineChannel, PeerGone
from wasmsand.wire.lines import LineTooLong

_COMMANDS_MAX: Final = 32
"""Commands at a time; when they run, the server does not read the next line."""


class _Running:
    """One running command."""

    def __init__(self, head_start_seconds: float) -> None:
        self.ended = threading.Event()
        self._head_start_ends = time.monotonic() + head_start_seconds

    def give_head_start(self) -> None:
        """Wait until the command has ended, but not longer than it may run alone."""
        self.ended.wait(max(0.0, self._head_start_ends - time.monotonic()))


class LineServer:
    """One client and its sandbox."""

    def __init__(self, channel: LineChannel, sandbox: LineSandbox) -> None:
        self._channel = channel
        self._sandbox = sandbox
        self._running: list[_Running] = []
        """Running commands, oldest first. Only the main thread changes the list."""

    def serve(self) -> None:
        """Read and answer lines until the end of input."""
        while True:
            try:
                line = self._channel.next_line()
            except LineTooLong as error:
                self._channel.send(refusal(BadRequest(f"Invalid request: {error}")))
                continue
            if line is None:
                break
            if line.strip():
                self._begin(line)
        self._wait_for_all()

    def _begin(self, line: bytes) -> None:
        try:
            request = request_of(line)
        except BadRequest as bad:
            self._channel.send(refusal(bad))
            return
        self._running = [running for running in self._running if not running.ended.is_set()]
        if self._running:
            self._running[-1].give_head_start()
        if isinstance(request, ShellRequest):
            self._begin_command(request)
            return
        if isinstance(request, ResetRequest):
            self._wait_for_all()
        self._channel.send(self._answer(request))

    def _begin_command(self, request: ShellRequest) -> None:
        while len(self._running) >= _COMMANDS_MAX:
            self._running.pop(0).ended.wait()
        running = _Running(self._sandbox.head_start_seconds)
        self._running.append(running)
        threading.Thread(
            target=self._run, args=(request, running), name="wasmsand-shell", daemon=True
        ).start()

    def _run(self, request: ShellRequest, running: _Running) -> None:
        try:
            self._channel.send(self._answer(request))
        except PeerGone:
            pass  # a signal tells the main thread
        finally:
            running.ended.set()

    def _answer(self, request: LineRequest) -> Answer:
        try:
            return self._sandbox.answer(request)
        except Exception as error:  # a bug: answer anyway, so that the client does not wait
            traceback.print_exc(file=sys.stderr)
            message = f"Internal error: {type(error).__name__}: {error}"
            return refusal(BadRequest(message, TYPE_OF[type(request)], request.id))

    def _wait_for_all(self) -> None:
        for running in self._running:
            running.ended.wait()
        self._running.clear()
