"""What a sandbox in another process or on a server does not offer yet.

Owns `WithoutTerminals`, which a backend inherits. Rules: an operation that a backend does not
offer raises `UnsupportedError`, which says what to use instead; it is never left out.
"""

from __future__ import annotations

from typing import IO, ClassVar

from wasmsand.sdk.backend import BackendTerminal, CommandRequest
from wasmsand.sdk.errors import UnsupportedError


class WithoutTerminals:
    """A backend that has neither terminals nor disk images."""

    kind: ClassVar[str]
    """What a user wrote to get it, as `isolation="process"`."""

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """See `Backend`."""
        raise self._unsupported("terminals")

    def save_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        raise self._unsupported("disk images")

    def load_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        raise self._unsupported("disk images")

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f'{self.kind} does not offer {what}; use isolation="none"')
