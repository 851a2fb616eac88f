"""Waiting for several files at once: poll and select.

Owns the function behind poll, ppoll, select and pselect. Rules: errors and hang-ups are always
reported; files that cannot block are always ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import POLLERR, POLLHUP, POLLNVAL
from wasmsand.kernel.wait import WaitQueue, WouldBlock

_ALWAYS: Final = POLLERR | POLLHUP | POLLNVAL


def poll(
    wanted: Sequence[tuple[OpenFile | None, int]], *, now: int, deadline: int | None
) -> list[int]:
    """The ready events for each (file, events); POLLNVAL for a closed fd (None).

    If nothing is ready: WouldBlock until `deadline`, then all zeros.
    """
    results = []
    ready = False
    for file, events in wanted:
        bits = POLLNVAL if file is None else file.poll() & (events | _ALWAYS)
        ready = ready or bits != 0
        results.append(bits)
    if ready or (deadline is not None and now >= deadline):
        return results
    queues: list[WaitQueue] = []
    for file, _ in wanted:
        if file is not None:
            queues.extend(file.queues())
    raise WouldBlock(tuple(queues), deadline)
