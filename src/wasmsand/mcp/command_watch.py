"""Observes a command that a client waits for: its last line of output, and cancellation.

Rules: those of `CancellableCall`; the event loop's thread reads the last line.
"""

from __future__ import annotations

from wasmsand.tools import CancellableCall

_LONGEST_LINE = 200


class CommandWatch(CancellableCall):
    """A `CommandObserver` for one call of a tool."""

    last_line = ""

    def printed(self, text: str) -> None:
        """Keep the last line that is not empty."""
        lines = text[-4 * _LONGEST_LINE :].strip().splitlines()
        if lines:
            self.last_line = lines[-1][:_LONGEST_LINE]
