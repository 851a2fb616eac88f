"""Observes a command that a client waits for: its last line of output, and cancellation.

Rules: the tool's thread writes and the event loop's thread reads; a lock guards what both
change. A command that starts after the cancellation is killed at once.
"""

from __future__ import annotations

import threading

from wasmsand.tools import Killable

_LONGEST_LINE = 200


class CommandWatch:
    """A `CommandObserver` for one call of a tool."""

    def __init__(self) -> None:
        self.last_line = ""
        self._lock = threading.Lock()
        self._cancelled = False
        self._command: Killable | None = None

    def started(self, command: Killable) -> None:
        """See `CommandObserver`."""
        with self._lock:
            self._command = command
            cancelled = self._cancelled
        if cancelled:
            command.kill()

    def printed(self, text: str) -> None:
        """Keep the last line that is not empty."""
        lines = text[-4 * _LONGEST_LINE :].strip().splitlines()
        if lines:
            self.last_line = lines[-1][:_LONGEST_LINE]

    def cancel(self) -> None:
        """Kill the command, now or when it starts."""
        with self._lock:
            self._cancelled = True
            command = self._command
        if command is not None:
            command.kill()
