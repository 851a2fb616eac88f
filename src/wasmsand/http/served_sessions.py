"""The shell and Python sessions of one sandbox that the server drives for its clients.

Rules: used on the event loop only, except `open`, which calls the sandbox; a session runs one
request at a time; the ids stay the same when the sandbox is copied, restored, paused or resumed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from wasmsand.http.failures import ApiFailure, lost
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Cancellation
from wasmsand.sdk.client_programs import add_session
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.shell import Shell

MAX_SESSIONS: Final = 16
"""Sessions of each kind in one sandbox; ended ones are forgotten when it is full."""
AnySession = Shell | PythonSession
_PREFIXES: Final = {"python": "py", "shell": "sh"}
_NAMES: Final = {"python": "Python session", "shell": "shell"}


@dataclass(slots=True)
class ServedSession:
    """A session of a client."""

    id: str
    session: AnySession
    running: Cancellation | None = None
    """Ends the request that it runs; None if it runs none."""

    @property
    def kind(self) -> str:
        """ "shell" or "python"."""
        return self.session.kind

    @contextmanager
    def busy(self, cancellation: Cancellation) -> Iterator[None]:
        """A request uses the session. Raises `session_busy`."""
        if self.running is not None:
            raise ApiFailure(
                409,
                "session_busy",
                f"the {_NAMES[self.kind]} runs code already; wait, interrupt it, or open another",
            )
        self.running = cancellation
        try:
            yield
        finally:
            self.running = None


class ServedSessions:
    """All sessions of one sandbox."""

    def __init__(self, sandbox: Sandbox, attachment: Attachment, builder: CommandBuilder) -> None:
        self._sandbox = sandbox
        self._attachment = attachment
        self._builder = builder
        self._by_id: dict[str, ServedSession] = {}
        self._opening = {"python": 0, "shell": 0}
        self._lost: frozenset[str] = frozenset()

    @contextmanager
    def opening(self, kind: str) -> Iterator[None]:
        """Reserve room for a session. Raises `too_many_sessions`."""
        for served in list(self._by_id.values()):
            if served.session.closed:
                self.forget(served)
        count = sum(served.kind == kind for served in self._by_id.values())
        if count + self._opening[kind] >= MAX_SESSIONS:
            raise ApiFailure(
                429,
                "too_many_sessions",
                f"{MAX_SESSIONS} {_NAMES[kind]}s are open in this sandbox; close one, or use "
                "another sandbox",
            )
        self._opening[kind] += 1
        try:
            yield
        finally:
            self._opening[kind] -= 1

    def open_python(
        self, env: Mapping[str, str] | None, cwd: str | None, stdin: str, user: str
    ) -> PythonSession:
        """A new Python session. It calls the sandbox, so run it on a thread."""
        session = PythonSession(
            self._attachment, self._builder, env=env, cwd=cwd, stdin=stdin, user=user
        )
        add_session(self._sandbox, session)
        return session

    def open_shell(self, env: Mapping[str, str] | None, cwd: str | None, user: str) -> Shell:
        """A new shell. It calls the sandbox, so run it on a thread."""
        shell = Shell(self._attachment, self._builder, env=env, cwd=cwd, user=user)
        add_session(self._sandbox, shell)
        return shell

    def remember(self, session: AnySession) -> ServedSession:
        """Give a session an id, and remember it."""
        served = ServedSession(f"{_PREFIXES[session.kind]}-{secrets.token_hex(8)}", session)
        self._by_id[served.id] = served
        return served

    def find(self, kind: str, identity: str) -> ServedSession:
        """A session by its id. Raises `session_not_found`, `state_lost`."""
        served = self._by_id.get(identity)
        if served is None or served.kind != kind:
            if identity in self._lost:
                raise lost(f"the {_NAMES[kind]} {identity}")
            raise ApiFailure(
                404,
                "session_not_found",
                f"no {_NAMES[kind]} {identity[:64]!r}: it was closed, or never existed",
            )
        return served

    def forget(self, served: ServedSession) -> None:
        """Forget a session."""
        self._by_id.pop(served.id, None)

    def live(self) -> list[ServedSession]:
        """The live sessions, oldest first."""
        return [served for served in self._by_id.values() if not served.session.closed]

    def names(self) -> dict[str, str]:
        """The ids of the live sessions, by their identity."""
        return {served.session.identity: served.id for served in self.live()}

    def begin_anew(self, names: Mapping[str, str], lost_ids: Iterable[str] = ()) -> None:
        """After a copy, a restore or a resume: find the sessions, whose ids are given by identity.
        Further ones get new ids."""
        self._by_id.clear()
        self._lost = frozenset(lost_ids)
        for session in self._sandbox.sessions:
            identity = names.get(session.identity)
            if identity is None:
                self.remember(session)
            else:
                self._by_id[identity] = ServedSession(identity, session)
