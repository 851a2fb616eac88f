"""Writes input to a command.

Rules: on every backend, a timeout or a cancelled call (`CANCELLATION`) ends the wait for a command
that does not read; the bytes that the command has accepted are counted, so that the caller can
continue with the rest.
"""

from __future__ import annotations

from typing import Final

from wasmsand.sdk.backend import CANCELLATION, STDIN, BackendProcess

_STEP_SECONDS: Final = 0.2
"""How long a wait may continue after the call was cancelled."""


def write_all(
    process: BackendProcess, data: bytes, timeout_seconds: float | None, fd: int = STDIN
) -> int:
    """Write to an input. Returns how many bytes it has accepted: fewer than all on a timeout, or
    if the call was cancelled."""
    cancellation = CANCELLATION.get()
    if cancellation is None:
        return process.write(data, fd, timeout_seconds)
    deadline = None if timeout_seconds is None else process.now() + timeout_seconds
    done = 0
    while True:
        step = _STEP_SECONDS
        if deadline is not None:
            step = max(0.0, min(step, deadline - process.now()))
        done += process.write(data[done:] if done else data, fd, step)
        if done == len(data) or cancellation.cancelled:
            return done
        if deadline is not None and process.now() >= deadline:
            return done
