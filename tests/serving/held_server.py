"""`wasmsand` with sandboxes whose lock is held: `python -m tests.serving.held_server serve ...`

A sandbox with MARK inodes, or one that runs a command in which MARK occurs, is one whose guest
does something that takes for ever under its lock. It begins when the file that TEST_HOLD_FILE
names appears; when it has, there is a file of the same name and `.held`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

MARK = 54_321
HOLD_VARIABLE = "TEST_HOLD_FILE"


def _hold(machine: Any, wanted: Path) -> None:
    while not wanted.exists():
        time.sleep(0.02)
    machine.lock.acquire()
    if not _is_marked(machine):
        machine.lock.release()
        return
    wanted.with_suffix(".held").touch()
    time.sleep(100_000)


def _is_marked(machine: Any) -> bool:
    kernel = machine.kernel
    return kernel.limits.max_inodes == MARK or any(
        str(MARK).encode() in word for process in kernel.processes for word in process.argv
    )


def main() -> int:
    """As `wasmsand`."""
    from wasmsand.cli import main as wasmsand
    from wasmsand.machine.machine import Machine

    wanted = Path(os.environ[HOLD_VARIABLE])
    make = Machine.__init__

    def made(self: Machine, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        if self.kernel.limits.max_inodes == MARK or not wanted.exists():
            threading.Thread(target=_hold, args=(self, wanted), daemon=True).start()

    Machine.__init__ = made  # type: ignore[method-assign]
    return wasmsand()


class Holding:
    """What a test does with it."""

    def __init__(self, directory: Path) -> None:
        self._wanted = directory / "hold"
        self.environ = {HOLD_VARIABLE: str(self._wanted)}

    def begin(self) -> None:
        """Have the locks held."""
        self._wanted.touch()
        deadline = time.monotonic() + 60
        while not self._wanted.with_suffix(".held").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
