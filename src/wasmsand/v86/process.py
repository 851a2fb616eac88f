"""`V86Process`: a started command, as the API sees it.

Owns its time limit and its public errors. Rules: as `BackendProcess` says; a command whose time is
up is killed, and reports a timeout.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from wasmsand.kernel.errno import KernelError
from wasmsand.sdk.backend import STDIN, CommandRequest, Ended, Output
from wasmsand.sdk.errors import CommandError, command_errors
from wasmsand.v86.agent import MachineLost
from wasmsand.v86.command import GuestCommand


class V86Process:
    """A `GuestCommand` with a time limit."""

    def __init__(
        self, command: GuestCommand, request: CommandRequest, on_end: Callable[[], None]
    ) -> None:
        self._command = command
        self._name = request.argv[0]
        self._on_end: Callable[[], None] | None = on_end
        self._timer: threading.Timer | None = None
        if request.timeout_seconds is not None:
            self._timer = threading.Timer(request.timeout_seconds, command.time_out)
            self._timer.daemon = True
            self._timer.start()
        if request.stdin:
            threading.Thread(target=self._feed, args=(request.stdin,), daemon=True).start()

    def _feed(self, data: bytes) -> None:
        with suppress(KernelError, MachineLost):
            self._command.write(data)
            self._command.close_input()

    @property
    def pid(self) -> int:
        """See `BackendProcess`."""
        return self._command.pid

    def now(self) -> float:
        """See `BackendProcess`."""
        return self._command.now()

    def uncounted_seconds(self) -> float:
        """See `BackendProcess`."""
        return 0.0

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        with self._errors():
            return self._command.read(timeout_seconds)

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...] | None:
        """See `BackendProcess`."""
        return None

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """See `BackendProcess`."""
        with self._errors():
            return self._command.write(data, fd, timeout_seconds)

    def close_input(self, fd: int = STDIN) -> None:
        """See `BackendProcess`."""
        self._command.close_input(fd)

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """See `BackendProcess`."""
        with self._errors():
            ended = self._command.wait(timeout_seconds)
            if ended is not None:
                if self._timer is not None:
                    self._timer.cancel()
                on_end, self._on_end = self._on_end, None
                if on_end is not None:
                    on_end()
            return ended

    def take_notices(self) -> tuple[str, ...]:
        """See `BackendProcess`."""
        return ()

    def kill(self) -> None:
        """See `BackendProcess`."""
        self._command.kill()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with command_errors(self._name):
                yield
        except MachineLost as lost:
            raise CommandError(f"EIO: the machine was lost ({lost})", "EIO") from None
