"""Operations that sandboxes in separate processes or on servers do not offer yet.

Owns `WithoutTerminals`, a base class of backends. Rules: an operation that a backend does not offer
is not missing; it raises `UnsupportedError`, which says what to use instead.
"""

from __future__ import annotations

from typing import IO, ClassVar

from wasmsand.sdk.backend import BackendTerminal, CommandRequest
from wasmsand.sdk.errors import UnsupportedError


class WithoutTerminals:
    """A backend without terminals and disk images."""

    kind: ClassVar[str]
    """How the user selects this backend, for example `isolation="process"`."""

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
