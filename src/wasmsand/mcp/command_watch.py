"""A command that a client waits for: what it printed last, and how to end it.

Rules: written on the tool's thread and read on the event loop's, under a lock where both
act. A command that starts after it was cancelled is killed at once.
"""

from __future__ import annotations

import threading

from wasmsand.sdk.command_handle import CommandHandle

_LONGEST_LINE = 200


class CommandWatch:
    """A `CommandObserver` for one call of a tool."""

    def __init__(self) -> None:
        self.last_line = ""
        self._lock = threading.Lock()
        self._cancelled = False
        self._command: CommandHandle | None = None

    def started(self, command: CommandHandle) -> None:
        """The command runs now."""
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
        """Nobody waits for the command any more: kill it, now or when it starts."""
        with self._lock:
            self._cancelled = True
            command = self._command
        if command is not None:
            command.kill()
