"""Bugs of ours, in the log.

Owns how often they are logged. Rules: what a guest can cause by itself is no bug and not logged
above debug level; should there be a bug that a guest can cause again and again, the host's log
does not fill up with it: a number of them per minute are logged, the others are counted.
"""

from __future__ import annotations

import logging
import time
from threading import Lock
from typing import Final

from wasmsand.engine.forking import renewed_in_child

log = logging.getLogger("wasmsand.machine")

PER_MINUTE: Final = 10
_MINUTE: Final = 60.0

_lock = Lock()
renewed_in_child(globals(), "_lock")
_began = float("-inf")
_logged = _left_out = 0


def log_bug(message: str, *arguments: object) -> None:
    """Log the exception that is being handled, if there were not too many of them."""
    global _began, _logged, _left_out
    with _lock:
        now = time.monotonic()
        if now - _began > _MINUTE:
            _began, _logged = now, 0
        if _logged >= PER_MINUTE:
            _left_out += 1
            return
        _logged += 1
        left_out, _left_out = _left_out, 0
    if left_out:
        log.error("%d host bugs were not logged", left_out)
    log.exception(message, *arguments)
