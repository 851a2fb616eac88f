"""`SandboxPool`: sandboxes that are created before they are needed.

Rules: a sandbox is handed out once and never returned, so no data passes from one user to the
next; the pool creates sandboxes on a thread that runs only while sandboxes are missing.
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
    """Load the modules that the first command needs."""
    sandbox.commands.run(["true"])
    sandbox.commands.run(":")


class SandboxPool:
    """Keeps `size` sandboxes ready.

    Example:
        with SandboxPool(4, setup=lambda sandbox: sandbox.files.upload("data", "data")) as pool:
            with pool.take() as sandbox:
                sandbox.commands.run("ls data")

    `make` creates a sandbox (default: `Sandbox()`; for example
    `lambda: Sandbox(timeout_ms=1000)`), and `setup` prepares it; both run in advance, on another
    thread. When a sandbox is taken, the pool starts to create another one. A sandbox ends with
    its `with` block.
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
        """Take a sandbox that is ready, or create one now. The caller has to `kill` it. Raises
        what `make` or `setup` raises.

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
        """The number of sandboxes that are ready to be taken."""
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
            except Exception:  # `take` will fail too, and raise it to its caller
                with self._lock:
                    self._is_filling = False
                return
            with self._lock:
                if not self._closed:
                    self._ready.append(sandbox)
                    continue
            sandbox.kill()

    def _wants_more(self) -> bool:
        """Whether more sandboxes are needed; if not, filling has ended."""
        with self._lock:
            self._is_filling = not self._closed and len(self._ready) < self.size
            return self._is_filling
