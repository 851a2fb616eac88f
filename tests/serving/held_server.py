"""`wasmsand` with sandboxes whose lock is held: `python -m tests.serving.held_server serve ...`

A sandbox is marked if it has MARK inodes, or if it runs a command that contains MARK. The server
takes the lock of each marked sandbox and never releases it, as if a guest's call took for ever.
It does so once the file that TEST_HOLD_FILE names exists, and then makes a file of the same name
with the suffix `.held`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

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
    """Run the command `wasmsand`, with marked sandboxes held."""
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
    """A test's control of the server."""

    def __init__(self, directory: Path) -> None:
        self._wanted = directory / "hold"
        self.environ = {HOLD_VARIABLE: str(self._wanted)}

    def begin(self) -> None:
        """Have the server hold its locks; returns when it does."""
        self._wanted.touch()
        wait_until(self._wanted.with_suffix(".held").exists, seconds=60)


if __name__ == "__main__":
    sys.exit(main())
