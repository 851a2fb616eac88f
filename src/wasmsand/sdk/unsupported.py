"""Operations that sandboxes in separate processes or on servers do not offer yet.

Owns `WithoutTerminals`, a base class of backends. Rules: an operation that a backend does not offer
is not missing; it raises `UnsupportedError`, which says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, ClassVar

from wasmsand.sdk.backend import Backend, BackendProcess, BackendTerminal, CommandRequest
from wasmsand.sdk.errors import UnsupportedError

if TYPE_CHECKING:
    from wasmsand.sdk.options import SandboxOptions


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

    def capture(self, process: BackendProcess, fork: Callable[[], None] | None = None) -> object:
        """See `Backend`."""
        raise self._unsupported("copies of sandboxes")

    def take_state(self, captured: Sequence[object]) -> object:
        """See `Backend`."""
        raise self._unsupported("copies of sandboxes")

    def open_state(self, state: object, options: SandboxOptions) -> Backend:
        """See `Backend`."""
        raise self._unsupported("copies of sandboxes")

    def adopt(self, captured: object, *, is_last: bool) -> BackendProcess:
        """See `Backend`."""
        raise self._unsupported("copies of sandboxes")

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f'{self.kind} does not offer {what}; use isolation="none"')
