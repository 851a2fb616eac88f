"""What the parts of a sandbox share: its backend while it lives, and its options.

Rules: every use of the backend goes through `Attachment.backend`, so that use after
`kill()` is the same clear error everywhere.
"""

from __future__ import annotations

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.sdk.options import SandboxOptions


class Attachment:
    """A backend that may have been closed."""

    __slots__ = ("_backend", "cwd", "options")

    def __init__(self, backend: Backend, options: SandboxOptions) -> None:
        self._backend: Backend | None = backend
        self.options = options
        self.cwd = options.cwd

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._backend is None

    @property
    def backend(self) -> Backend:
        """The backend. Raises `SandboxClosedError` after `close`."""
        backend = self._backend
        if backend is None:
            raise SandboxClosedError("the sandbox was killed; create a new Sandbox")
        return backend

    def check_open(self) -> None:
        """Raise `SandboxClosedError` after `close`."""
        _ = self.backend

    def close(self) -> None:
        """End the sandbox; idempotent, from any thread."""
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.close()

    def __repr__(self) -> str:
        return "a killed sandbox" if self.closed else "a sandbox"
