"""`PolledProcess`: a started command behind requests of bounded duration.

Owns what the backends of separate processes and of servers share. Rules: one request waits for a
bounded time, so that a lost peer is noticed; the caller's timeout spans any number of requests;
input is sent in pieces, and bytes that the command has not accepted are sent again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Final

from wasmsand.sdk.backend import STDIN, Ended, Output

POLL_SECONDS: Final = 20.0
"""How long one request waits."""
_PIECE_BYTES: Final = 1024 * 1024


class PolledProcess(ABC):
    """Implements `read`, `write` and `wait` of a `BackendProcess` with short requests."""

    @abstractmethod
    def _read_for(self, seconds: float) -> tuple[Output, ...] | None:
        """The result of `read`; None if there is no output for `seconds`."""

    @abstractmethod
    def _write_for(self, data: bytes, fd: int, seconds: float) -> int:
        """How many bytes the input has accepted within `seconds`."""

    @abstractmethod
    def _wait_for(self, seconds: float) -> Ended | None:
        """How the command ended; None if it still runs after `seconds`."""

    _uncounted_seconds = 0.0
    """As the last answer said; set by `_read_for`."""

    def now(self) -> float:
        """See `BackendProcess`. This is the host's time, because requests carry relative times."""
        return time.monotonic() - self._uncounted_seconds

    def uncounted_seconds(self) -> float:
        """See `BackendProcess`."""
        return self._uncounted_seconds

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        deadline = _deadline(timeout_seconds)
        while True:
            outputs = self._read_for(_step(deadline))
            if outputs is not None:
                return outputs
            if _is_over(deadline):
                raise TimeoutError("the command printed nothing before the timeout")

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...] | None:
        """See `BackendProcess`."""
        return None

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """See `BackendProcess`."""
        deadline = _deadline(timeout_seconds)
        done = 0
        while done < len(data):
            piece = data[done : done + _PIECE_BYTES]
            written = self._write_for(piece, fd, _step(deadline))
            done += written
            if written < len(piece) and _is_over(deadline):
                break
        return done

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """See `BackendProcess`."""
        deadline = _deadline(timeout_seconds)
        while True:
            ended = self._wait_for(_step(deadline))
            if ended is not None or _is_over(deadline):
                return ended


def _deadline(timeout_seconds: float | None) -> float | None:
    return None if timeout_seconds is None else time.monotonic() + timeout_seconds


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _step(deadline: float | None) -> float:
    """How long the next request waits."""
    if deadline is None:
        return POLL_SECONDS
    return max(0.0, min(POLL_SECONDS, deadline - time.monotonic()))
