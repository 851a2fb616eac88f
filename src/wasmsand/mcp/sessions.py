"""The sandboxes of MCP sessions: one each, from its first use to the session's end.

Rules: a session's name comes from the transport, which has checked it; nobody reaches a
sandbox by another session's name. A sandbox ends with its session: when the client says
so, when no request of it was under way for the idle time, or with the server. All calls
come from the event loop's thread, and none of them waits there for a sandbox: making one,
using it and ending it happen on threads, of which each session has its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from wasmsand.sdk.errors import SandboxClosedError, SandboxError
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.serving.daemons import Daemons
from wasmsand.serving.endings import Endings
from wasmsand.serving.lanes import Lane, LaneFull, LaneLimits
from wasmsand.tools import SandboxTools

Result = TypeVar("Result")

CALLS_AT_ONCE = 8
"""Tool calls of one session that run at the same time; further ones wait."""
MAX_WAITING = 64
"""Tool calls of one session that wait; further ones are refused."""
_WAITING_SECONDS = 3600.0
_MAX_THREADS = 256
_LAST_ENDS_SECONDS = 2.0
"""How long `end_all` waits."""


class SessionBusy(SandboxError):
    """A session has too many calls, or the server too many sandboxes that do not end."""


@dataclass(slots=True)
class McpSession:
    """One client's sandbox and its tools."""

    sandbox: Sandbox
    tools: SandboxTools


class Sessions:
    """All sandboxes of one server."""

    def __init__(
        self,
        create: Callable[[], Sandbox],
        *,
        output_limit: int,
        max_sessions: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._create = create
        self._output_limit = output_limit
        self._max_sessions = max_sessions
        self._clock = clock
        self._sessions: dict[str, McpSession] = {}
        self._making: dict[str, asyncio.Task[McpSession]] = {}
        self._under_way: dict[str, int] = {}
        self._last_used: dict[str, float] = {}
        self._daemons = Daemons("wasmsand-mcp")
        limits = LaneLimits(
            threads=min(CALLS_AT_ONCE * max_sessions, _MAX_THREADS),
            tenant_threads=CALLS_AT_ONCE,
            tenant_waiting=MAX_WAITING,
            sandbox_threads=CALLS_AT_ONCE,
            sandbox_waiting=MAX_WAITING,
            queue_seconds=_WAITING_SECONDS,
        )
        self._lane = Lane("tool", limits, max_sessions, self._daemons)
        self.endings = Endings(self._daemons)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def busy_threads(self) -> int:
        """Threads that wait for a sandbox."""
        return self._daemons.busy

    async def get(self, name: str) -> McpSession:
        """The session's sandbox; made at the first call. Raises `SandboxError`."""
        session = self._sessions.get(name)
        if session is not None:
            return session
        task = self._making.get(name)
        if task is None:
            if len(self.endings) >= self._max_sessions:
                raise SessionBusy("too many sandboxes of other sessions have not ended yet")
            task = self._making[name] = asyncio.create_task(self._make(name))
            task.add_done_callback(_heard)
        return await asyncio.shield(task)

    async def _make(self, name: str) -> McpSession:
        def make() -> McpSession:
            sandbox = self._create()
            return McpSession(sandbox, SandboxTools(sandbox, output_limit=self._output_limit))

        this, is_wanted = asyncio.current_task(), False
        try:
            session = await self._on_thread(name, make)
        finally:
            is_wanted = self._making.get(name) is this
            if is_wanted:
                del self._making[name]
        if not is_wanted:
            self.endings.run(session.sandbox.kill)
            raise SandboxClosedError("the session has ended")
        self._sessions[name] = session
        return session

    async def run(self, name: str, work: Callable[[McpSession], Result]) -> Result:
        """What `work` returns for the session, from one of its threads. Raises `SandboxError`."""
        session = await self.get(name)
        return await self._on_thread(name, lambda: work(session))

    async def _on_thread(self, name: str, work: Callable[[], Result]) -> Result:
        try:
            return await self._lane.run(name, "-", work)
        except LaneFull:
            raise SessionBusy("the session has too many calls; wait for some") from None

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
        """Kill the session's sandbox, on a thread; it is no error if there is none."""
        self._last_used.pop(name, None)
        self._making.pop(name, None)
        session = self._sessions.pop(name, None)
        if session is not None:
            self.endings.run(session.sandbox.kill)

    def end_idle(self, seconds: float) -> None:
        """End every session that had no request under way for `seconds`."""
        now = self._clock()
        for name, used in list(self._last_used.items()):
            if name not in self._under_way and now - used >= seconds:
                self.end(name)

    async def end_all(self) -> None:
        """End every session. What hangs is not waited for."""
        for name in [*self._sessions, *self._making]:
            self.end(name)
        await self.endings.settle(_LAST_ENDS_SECONDS)


def _heard(task: asyncio.Task[McpSession]) -> None:
    """Whoever asked for it may have gone: then its failure is no news for the log."""
    if not task.cancelled():
        task.exception()
