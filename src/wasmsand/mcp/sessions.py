"""The sandboxes of MCP sessions: one each, from its first use to the session's end.

Rules: a session's name comes from the transport, which has checked it; nobody reaches a
sandbox by another session's name. A sandbox ends with its session: when the client says
so, when no request of it was under way for the idle time, or with the server. All calls
come from the event loop's thread; only the tools run on others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from anyio import CapacityLimiter

from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools import SandboxTools

CALLS_AT_ONCE = 8
"""Tool calls of one session that run at the same time; further ones wait."""


@dataclass(slots=True)
class Session:
    """One client's sandbox and its tools."""

    sandbox: Sandbox
    tools: SandboxTools
    limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(CALLS_AT_ONCE))


class Sessions:
    """All sandboxes of one server."""

    def __init__(
        self,
        create: Callable[[], Sandbox],
        *,
        output_limit: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._create = create
        self._output_limit = output_limit
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._under_way: dict[str, int] = {}
        self._last_used: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, name: str) -> Session:
        """The session's sandbox; made at the first call."""
        session = self._sessions.get(name)
        if session is None:
            sandbox = self._create()
            session = Session(sandbox, SandboxTools(sandbox, output_limit=self._output_limit))
            self._sessions[name] = session
        return session

    @contextmanager
    def request(self, name: str) -> Iterator[None]:
        """While a request of the session is under way, it is not idle."""
        self._under_way[name] = self._under_way.get(name, 0) + 1
        try:
            yield
        finally:
            self._under_way[name] -= 1
            if not self._under_way[name]:
                del self._under_way[name]
            if name in self._sessions:
                self._last_used[name] = self._clock()

    def end(self, name: str) -> None:
        """Kill the session's sandbox; it is no error if there is none."""
        self._last_used.pop(name, None)
        session = self._sessions.pop(name, None)
        if session is not None:
            session.sandbox.kill()

    def end_idle(self, seconds: float) -> None:
        """End every session that had no request under way for `seconds`."""
        now = self._clock()
        for name, used in list(self._last_used.items()):
            if name not in self._under_way and now - used >= seconds:
                self.end(name)

    def end_all(self) -> None:
        """End every session."""
        for name in list(self._sessions):
            self.end(name)
