"""The state that the parts of a sandbox share: its options, and its backend until it is killed.

Rules: every use of the backend goes through `Attachment.backend`, so that use after `kill()`
raises the same error everywhere, and use of a paused sandbox resumes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.errors import ForkedError, SandboxClosedError
from wasmsand.sdk.options import HOME, SandboxOptions


class Attachment:
    """A backend that may have been closed."""

    __slots__ = (
        "_backend",
        "_killed",
        "_owner",
        "_resume",
        "_resuming",
        "cwd",
        "on_use",
        "options",
    )

    def __init__(self, backend: Backend, options: SandboxOptions) -> None:
        self._backend: Backend | None = backend
        self._killed = False
        """Whether `close` was called."""
        self._owner = None if getattr(backend, "survives_fork", False) else os.getpid()
        self.options = options
        self.cwd = backend.cwd
        self.on_use: Callable[[], None] | None = None
        """Called whenever the backend is about to be used."""
        self._resume: Callable[[], Backend] | None = None
        """Makes the backend of a paused sandbox."""
        self._resuming = threading.RLock()
        """Held while the sandbox is paused or resumed."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or this process is a fork that cannot use the sandbox."""
        gone = self._backend is None and self._resume is None
        return gone or self._is_of_another_process()

    @property
    def paused(self) -> bool:
        """Whether the next use has to resume the sandbox."""
        return self._resume is not None

    def _is_of_another_process(self) -> bool:
        return self._owner is not None and os.getpid() != self._owner

    @property
    def backend(self) -> Backend:
        """The backend. Raises `SandboxClosedError` after `close`, and `ForkedError` in a forked
        process, where the threads that held the sandbox's locks do not exist."""
        if self._is_of_another_process():
            raise ForkedError.here("sandbox")
        if self.on_use is not None:
            self.on_use()
        backend = self._backend
        return self._resumed() if backend is None else backend

    @property
    def backend_as_it_is(self) -> Backend | None:
        """The backend; None if the sandbox is paused. Raises what `backend` raises."""
        if self.closed:
            return self.backend
        return self._backend

    def _resumed(self) -> Backend:
        with self._resuming:
            if self._resume is not None:
                backend = self._resume()
                self._backend, self._resume, self.cwd = backend, None, backend.cwd
                if self._killed:  # meanwhile
                    self.close()
            if self._backend is None:
                raise SandboxClosedError("the sandbox was killed; create a new Sandbox")
            return self._backend

    def pause(self, resume: Callable[[], Backend]) -> None:
        """Close the backend; the next use calls `resume` for another one."""
        with self._resuming:
            old = self.backend
            self._backend, self._resume = None, resume
            old.close()

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
        if self._killed:  # meanwhile, perhaps before this backend was the sandbox's
            self.close()
            raise SandboxClosedError("the sandbox was killed; create a new Sandbox")

    def close(self) -> None:
        """End the sandbox; idempotent, from any thread. Does nothing in a forked process."""
        self._killed = True
        backend, self._backend, self._resume = self._backend, None, None
        if backend is not None and not self._is_of_another_process():
            backend.close()

    def __repr__(self) -> str:
        return "a killed sandbox" if self.closed else "a sandbox"
