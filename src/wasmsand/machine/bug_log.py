"""Logging of host bugs.

Owns the rate at which bugs are logged. Rules: an error that a guest can cause is not a bug and is
not logged above debug level. If a guest can trigger a bug repeatedly after all, the host's log
must not fill up: `PER_MINUTE` bugs are logged per minute, the others are only counted.
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
    """Log the exception being handled, unless too many were logged in this minute."""
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
