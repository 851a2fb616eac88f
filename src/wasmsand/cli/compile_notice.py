"""What a command of the terminal shows while a program is compiled.

Rules: standard error only, because standard output belongs to the guest. On a terminal it is a
spinner that disappears; otherwise one line. Compilations that take no noticeable time are not
shown.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from wasmsand.machine.uncounted import SLOW_TO_COMPILE, Compilation, tell_of_compilations

if TYPE_CHECKING:
    from rich.status import Status


class _Shown:
    """The programs that are being compiled, and their spinner."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._programs: list[str] = []
        self._status: Status | None = None

    def __call__(self, compilation: Compilation) -> None:
        if compilation.size < SLOW_TO_COMPILE:
            return
        with self._lock:
            if compilation.is_over:
                self._programs.remove(compilation.program)
            else:
                self._programs.append(compilation.program)
                if not sys.stderr.isatty():
                    print(f"wasmsand: {self._text()}", file=sys.stderr, flush=True)
            if sys.stderr.isatty():
                self._spin()

    def _text(self) -> str:
        return f"compiling {', '.join(self._programs)} for this machine (once) ..."

    def _spin(self) -> None:
        from rich.console import Console
        from rich.markup import escape

        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._programs:
            console = Console(stderr=True, highlight=False)
            self._status = console.status(escape(self._text()))
            self._status.start()


def show_compilations() -> None:
    """From now on, show compilations on standard error."""
    tell_of_compilations(_Shown())
