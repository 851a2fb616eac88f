"""The state that the parts of a sandbox share: its options, and its backend until it is killed.

Rules: every use of the backend goes through `Attachment.backend`, so that use after `kill()`
raises the same error everywhere.
"""

from __future__ import annotations

import os

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.errors import ForkedError, SandboxClosedError
from wasmsand.sdk.options import HOME, SandboxOptions


class Attachment:
    """A backend that may have been closed."""

    __slots__ = ("_backend", "_owner", "cwd", "options")

    def __init__(self, backend: Backend, options: SandboxOptions) -> None:
        self._backend: Backend | None = backend
        self._owner = None if getattr(backend, "survives_fork", False) else os.getpid()
        self.options = options
        self.cwd = backend.cwd

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or this process is a fork that cannot use the sandbox."""
        return self._backend is None or self._is_of_another_process()

    def _is_of_another_process(self) -> bool:
        return self._owner is not None and os.getpid() != self._owner

    @property
    def backend(self) -> Backend:
        """The backend. Raises `SandboxClosedError` after `close`, and `ForkedError` in a forked
        process, where the threads that held the sandbox's locks do not exist."""
        if self._is_of_another_process():
            raise ForkedError.here("sandbox")
        backend = self._backend
        if backend is None:
            raise SandboxClosedError("the sandbox was killed; create a new Sandbox")
        return backend

    def check_open(self) -> None:
        """Raises what `backend` raises."""
        _ = self.backend

    def make_working_directory(self) -> None:
        """Create the sandbox's `cwd`, unless every sandbox has it. On failure, close the
        sandbox."""
        if self.cwd != HOME:
            try:
                self.backend.make_directory(self.cwd)
            except BaseException:
                self.close()
                raise

    def replace(self, backend: Backend) -> None:
        """From now on, use another backend; the old one ends. Raises what `backend` raises."""
        old = self.backend
        self._backend = backend
        self.cwd = backend.cwd
        old.close()

    def close(self) -> None:
        """End the sandbox; idempotent, from any thread. Does nothing in a forked process."""
        backend, self._backend = self._backend, None
        if backend is not None and not self._is_of_another_process():
            backend.close()

    def __repr__(self) -> str:
        return "a killed sandbox" if self.closed else "a sandbox"
