"""Shutdown of a server, within seconds, whatever hangs.

After SIGTERM or SIGINT the server accepts no connections, and running requests have a grace
period; then their sandboxes are killed, so that each request still gets a response. Rules: a
second signal ends the process at once; so does the deadline after the first. A thread that does
not depend on the event loop watches for both. The process does not wait for threads that wait
for a sandbox.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn

from wasmsand.serving.crowd import ACCEPTED_AT_ONCE
from wasmsand.serving.listening import BACKLOG

LAST_ANSWERS_SECONDS: Final = 3.0
"""After the grace period: time to send the responses of killed sandboxes."""
DEADLINE_SECONDS: Final = 10.0
"""After the grace period: time until the process ends, whatever hangs."""


class GracefulServer(uvicorn.Server):
    """uvicorn's server, with a shutdown that answers running requests."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        grace_seconds: float,
        begin: Callable[[], None],
        kill_all: Callable[[], Awaitable[None]],
    ) -> None:
        """`begin` is called when shutdown begins, `kill_all` after the grace period."""
        config.timeout_graceful_shutdown = int(grace_seconds + LAST_ANSWERS_SECONDS)
        config.backlog = ACCEPTED_AT_ONCE
        super().__init__(config)
        self._grace_seconds = grace_seconds
        self._begin = begin
        self._kill_all = kill_all

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        # asyncio accepts `config.backlog` connections in one step, so that number is small. Give
        # the system's queue its real length here.
        for listener in sockets or ():
            listener.listen(BACKLOG)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin shutdown. Unlike uvicorn's, it does not raise the signal again at the end, because
        a requested shutdown is no failure. `_watch` handles a second signal."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down."""
        self._begin()
        killer = asyncio.create_task(self._kill_after_grace())
        try:
            await super().shutdown(sockets)
        finally:
            killer.cancel()
            for connection in list(self.server_state.connections):
                connection.transport.abort()

    async def _kill_after_grace(self) -> None:
        await asyncio.sleep(self._grace_seconds)
        await self._kill_all()

    def run_until_signal(self, listener: socket.socket) -> None:
        """Serve on the main thread until a signal arrives."""
        with _watched(self._grace_seconds + DEADLINE_SECONDS):
            self.run(sockets=[listener])


def end_with(descriptor: int) -> None:
    """Begin shutdown when nobody has the other end of a pipe open any more."""

    def watch() -> None:
        try:
            while os.read(descriptor, 4096):
                pass
        except OSError:
            pass  # it was closed here: the same
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="wasmsand-parent", daemon=True).start()


def leave_process(status: int = 0) -> None:
    """End the process now, without waiting for other threads."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(status)


@contextmanager
def _watched(seconds: float) -> Iterator[None]:
    """After the first signal, the process ends within `seconds`; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python writes to it when a signal arrives, whatever the main thread does.
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(
        target=_watch, args=(reading, seconds), name="wasmsand-signals", daemon=True
    ).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)


def _watch(descriptor: int, seconds: float) -> None:
    told = False
    try:
        while data := os.read(descriptor, 16):
            for number in data:
                if number not in (signal.SIGINT, signal.SIGTERM):
                    continue
                if told:
                    os._exit(128 + number)
                told = True
                deadline = threading.Timer(seconds, _deadline_is_over)
                deadline.daemon = True
                deadline.start()
    finally:
        os.close(descriptor)


def _deadline_is_over() -> None:
    try:
        os.write(2, b"wasmsand: shutdown hangs; the process ends now\n")
    finally:
        os._exit(1)
