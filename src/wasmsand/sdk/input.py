"""Input of a command on its way from the caller.

Rules: whoever waits for a command to read can be told to stop, by a time limit or by a caller
who gives up (`CANCELLATION`), on every backend; what the command has taken is counted, so that
the caller can go on with the rest.
"""

from __future__ import annotations

from typing import Final

from wasmsand.sdk.backend import CANCELLATION, STDIN, BackendProcess

_STEP_SECONDS: Final = 0.2
"""How long a caller who has given up may still be waited for."""


def write_all(
    process: BackendProcess, data: bytes, timeout_seconds: float | None, fd: int = STDIN
) -> int:
    """Write to an input. Returns how many bytes it has taken: fewer than `data` has when time
    ran out, or the caller gave up."""
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
