"""The sandboxes of MCP sessions: one per session, from its first use to the session's end.

Rules: the transport has validated a session's name; a session can use only its own sandbox. A
sandbox ends with its session: when the client ends the session, when the session was idle for too
long, or at shutdown. All methods are called on the event loop, and none of them waits there for a
sandbox: sandboxes are created, used and killed on threads, and each session has its own threads.
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
from wasmsand.tools.surroundings import Surroundings

Result = TypeVar("Result")

CALLS_AT_ONCE = 8
"""Running tool calls of one session; further calls wait."""
DEFAULT_COPIES = 4
"""Copies of its sandbox that one session may have."""
MAX_WAITING = 64
"""Waiting tool calls of one session; further calls are refused."""
_WAITING_SECONDS = 3600.0
_MAX_THREADS = 256
_LAST_ENDS_SECONDS = 2.0
"""How long `end_all` waits."""


class SessionBusy(SandboxError):
    """The session has too many calls, or too many killed sandboxes have not ended."""


@dataclass(slots=True)
class McpSession:
    """One client's sandbox and its tools."""

    sandbox: Sandbox
    tools: SandboxTools

    def kill(self) -> None:
        """End the sandbox and its copies."""
        self.sandbox.kill()
        self.tools.end_copies()


class Sessions:
    """All sandboxes of one server."""

    def __init__(
        self,
        create: Callable[[], Sandbox],
        *,
        output_limit: int,
        max_sessions: int = 1,
        index_installs: bool = False,
        max_copies: int = DEFAULT_COPIES,
        apply_changes: bool = False,
        has_network: bool = False,
        surroundings: Surroundings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.has_network = has_network
        """Whether the sandboxes may reach anything."""
        self.surroundings = surroundings or Surroundings()
        """What a new sandbox has."""
        self._apply_changes = apply_changes
        self._create = create
        self._output_limit = output_limit
        self._index_installs = index_installs
        self._max_copies = max_copies
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
        """The session's sandbox, created at the first call. Raises `SandboxError`."""
        session = self._sessions.get(name)
        if session is not None:
            return session
        task = self._making.get(name)
        if task is None:
            if len(self.endings) >= self._max_sessions:
                raise SessionBusy("too many killed sandboxes have not ended yet; try again later")
            task = self._making[name] = asyncio.create_task(self._make(name))
            task.add_done_callback(_ignore_failure)
        return await asyncio.shield(task)

    async def _make(self, name: str) -> McpSession:
        def make() -> McpSession:
            sandbox = self._create()
            tools = SandboxTools(
                sandbox,
                output_limit=self._output_limit,
                with_images=True,
                index_installs=self._index_installs,
                max_copies=self._max_copies,
                apply_changes=self._apply_changes,
            )
            return McpSession(sandbox, tools)

        this, is_wanted = asyncio.current_task(), False
        try:
            session = await self._on_thread(name, make)
        finally:
            is_wanted = self._making.get(name) is this
            if is_wanted:
                del self._making[name]
        if not is_wanted:
            self.endings.run(session.kill)
            raise SandboxClosedError("the session has ended")
        self._sessions[name] = session
        return session

    async def run(self, name: str, work: Callable[[McpSession], Result]) -> Result:
        """Run `work` on a thread of the session, and return its result. Raises `SandboxError`."""
        session = await self.get(name)
        return await self._on_thread(name, lambda: work(session))

    async def _on_thread(self, name: str, work: Callable[[], Result]) -> Result:
        try:
            return await self._lane.run(name, "-", work)
        except LaneFull:
            raise SessionBusy("the session has too many calls; wait until some end") from None

    @contextmanager
    def request(self, name: str) -> Iterator[None]:
        """Count a request of the session: meanwhile the session is not idle."""
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
        """Kill the session's sandbox, if there is one, on a thread."""
        self._last_used.pop(name, None)
        self._making.pop(name, None)
        session = self._sessions.pop(name, None)
        if session is not None:
            self.endings.run(session.kill)

    def end_idle(self, seconds: float) -> None:
        """End every session that was idle for `seconds`."""
        now = self._clock()
        for name, used in list(self._last_used.items()):
            if name not in self._under_way and now - used >= seconds:
                self.end(name)

    async def end_all(self) -> None:
        """End every session. Do not wait for sandboxes that hang."""
        for name in [*self._sessions, *self._making]:
            self.end(name)
        await self.endings.settle(_LAST_ENDS_SECONDS)


def _ignore_failure(task: asyncio.Task[McpSession]) -> None:
    """Mark the exception as retrieved, so that asyncio does not log it if nobody waits."""
    if not task.cancelled():
        task.exception()
