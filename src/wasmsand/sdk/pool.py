"""`SandboxPool`: sandboxes that are ready before they are wanted.

Rules: a sandbox is given out once and never comes back, so nothing passes from one user to the
next; the pool makes them on a thread that lives only while there is something to make.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from wasmsand.sdk import arguments
from wasmsand.sdk.errors import ForkedError, SandboxClosedError
from wasmsand.sdk.sandbox import Sandbox


def _warm(sandbox: Sandbox) -> None:
    """Load what the first command needs."""
    sandbox.commands.run(["true"])
    sandbox.commands.run(":")


class SandboxPool:
    """Keeps `size` sandboxes ready.

    Example:
        with SandboxPool(4, setup=lambda sandbox: sandbox.files.upload("data", "data")) as pool:
            with pool.take() as sandbox:
                sandbox.commands.run("ls data")

    `make` makes a sandbox (by default `Sandbox()`, as `lambda: Sandbox(timeout_ms=1000)`),
    `setup` prepares it: both run ahead, on another thread. Leaving the block of a sandbox ends
    it; the pool has another one by then.
    """

    def __init__(
        self,
        size: int = 4,
        *,
        make: Callable[[], Sandbox] = Sandbox,
        setup: Callable[[Sandbox], object] | None = None,
    ) -> None:
        self.size = arguments.positive_integer("size", size)
        arguments.callback("make", make)
        arguments.callback("setup", setup)
        self._make = make
        self._setup = setup
        self._owner = os.getpid()
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._ready: deque[Sandbox] = deque()
        self._closed = False
        self._is_filling = False
        self._fill_soon()

    def take(self) -> Sandbox:
        """A fresh sandbox: one that is ready, or else one that is made now. It is yours to
        `kill`. What `make` or `setup` raises is raised here.

        Example:
            with pool.take() as sandbox:
                sandbox.commands.run("true")
        """
        if os.getpid() != self._owner:
            raise ForkedError.here("pool")
        with self._lock:
            if self._closed:
                raise SandboxClosedError("the pool was closed; create a new SandboxPool")
            sandbox = self._ready.popleft() if self._ready else None
        self._fill_soon()
        return self._new() if sandbox is None else sandbox

    @property
    def ready(self) -> int:
        """How many sandboxes wait to be taken."""
        return len(self._ready)

    def close(self) -> None:
        """End the sandboxes that were not taken. Calling it again does nothing.

        Example:
            pool.close()
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            ready = list(self._ready)
            self._ready.clear()
        for sandbox in ready:
            sandbox.kill()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.ready} of {self.size} ready"
        return f"<SandboxPool {state}>"

    def _new(self) -> Sandbox:
        sandbox = self._make()
        try:
            _warm(sandbox)
            if self._setup is not None:
                self._setup(sandbox)
        except BaseException:
            sandbox.kill()
            raise
        return sandbox

    def _fill_soon(self) -> None:
        with self._lock:
            if self._is_filling or self._closed or len(self._ready) >= self.size:
                return
            self._is_filling = True
        threading.Thread(target=self._fill, name="wasmsand-pool", daemon=True).start()

    def _fill(self) -> None:
        while self._wants_more():
            try:
                sandbox = self._new()
            except Exception:  # `take` will meet the same, and tell its caller
                with self._lock:
                    self._is_filling = False
                return
            with self._lock:
                if not self._closed:
                    self._ready.append(sandbox)
                    continue
            sandbox.kill()

    def _wants_more(self) -> bool:
        """Whether to go on; if not, filling has ended."""
        with self._lock:
            self._is_filling = not self._closed and len(self._ready) < self.size
            return self._is_filling
