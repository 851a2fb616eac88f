"""`wasmsand` on a host whose wall clock jumps: `python -m tests.http.jumping_clock serve ...`.

The clock is the host's, plus the number of seconds in the file that WASMSAND_TEST_CLOCK names. A
test cannot set the clock of the machine that it runs on.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_FILE = Path(os.environ["WASMSAND_TEST_CLOCK"])
_now, _now_ns = time.time, time.time_ns


def _jump() -> int:
    try:
        return int(_FILE.read_text() or 0)
    except (OSError, ValueError):
        return 0


time.time = lambda: _now() + _jump()
time.time_ns = lambda: _now_ns() + _jump() * 1_000_000_000

if __name__ == "__main__":
    from wasmsand.cli import main

    sys.exit(main())
