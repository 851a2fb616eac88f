"""The rules that must hold after every input.

Owns the rules that all targets share: no bug is logged, no thread dies of an exception, memory
stays within its bound, a machine gives everything back. A target's own rules are in its `run`.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fuzz.target import Finding

if TYPE_CHECKING:
    from wasmsand.machine import Machine

_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")
_SETTLE_SECONDS: Final = 5.0
_MOST_BUGS: Final = 100
_EXPECTED: Final = frozenset({"ClientDisconnect"})
"""Exceptions that our servers' packages log when a client disconnects; these are no bugs."""


class BugWatch(logging.Handler):
    """Collects logged errors and uncaught exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._bugs: list[str] = []
        self.count = 0
        """All bugs so far."""

    def install(self) -> None:
        """Watch this process."""
        logging.getLogger().addHandler(self)
        threading.excepthook = self._thread_died
        sys.unraisablehook = self._unraisable

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and type(record.exc_info[1]).__name__ in _EXPECTED:
            return
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info))
        self._note(text)

    def _thread_died(self, died: threading.ExceptHookArgs) -> None:
        lines = traceback.format_exception(died.exc_type, died.exc_value, died.exc_traceback)
        self._note(f"thread {died.thread} died\n{''.join(lines)}")

    def _unraisable(self, event: Any) -> None:
        lines = traceback.format_exception(event.exc_type, event.exc_value, event.exc_traceback)
        self._note(f"unraisable in {event.object!r}\n{''.join(lines)}")

    def _note(self, text: str) -> None:
        self.count += 1
        if len(self._bugs) < _MOST_BUGS:
            self._bugs.append(text)

    def check(self) -> None:
        """Raise `Finding` for the first bug since the last check."""
        if self._bugs:
            bug = self._bugs[0]
            self._bugs.clear()
            raise Finding("host-bug", bug)


class MemoryWatch:
    """The resident memory of this process, where the system reports it."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._base: int | None = None
        self._before = 0

    def begin(self) -> None:
        """Prepare for an input."""
        try:
            _CLEAR.write_text("5")  # reset the peak
        except OSError:
            return
        self._before = _field("VmRSS")

    def settle(self) -> None:
        """Measure growth from now on; called after the first inputs."""
        self._base = _field("VmRSS")

    def check(self) -> None:
        """Raise `Finding` if this input, or all inputs together, took too much memory."""
        peak = _field("VmHWM")
        if peak - self._before > self._bound:
            raise Finding("memory", f"one input took {(peak - self._before) >> 20} MiB")
        if self._base is not None and self._before - self._base > self._bound:
            grown = (self._before - self._base) >> 20
            self._base = self._before
            raise Finding("leak", f"all inputs together left {grown} MiB behind")


def _field(name: str) -> int:
    try:
        text = _STATUS.read_text("ascii")
    except OSError:  # not Linux
        return 0
    _, _, rest = text.partition(name + ":")
    return int(rest.split()[0]) * 1024 if rest else 0


def resident_bytes() -> int:
    """The resident memory of this process."""
    return _field("VmRSS")


def check_given_back(machine: Machine, base: int) -> None:
    """Kill all processes; raise `Finding` if the machine then holds a process or memory.

    `base` is what the ledger of the machine said when it was new.
    """
    kernel = machine.kernel
    with machine.lock:
        kernel.kill_all()
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        with machine.lock:
            kernel.ledger.settle()
            kept: dict[str, object] = {
                "processes": [process.pid for process in kernel.processes if process.pid != 1],
                "terminals": list(kernel.terminals),
                "fifos": list(kernel.fifos),
                "ledger": kernel.ledger.used - base,
            }
        held = {name: what for name, what in kept.items() if what}
        if not held:
            return
        if time.monotonic() > deadline:
            raise Finding("left-behind", f"after kill_all: {held}")
        time.sleep(0.005)  # wait: the threads of guests end by themselves
