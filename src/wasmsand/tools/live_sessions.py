"""The shell and the interpreter that the tools of one sandbox keep from call to call.

Owns `LiveSessions`. Rules: there is one of each, started when it is first needed. One call uses it
at a time; a second call waits as long as it may take itself, and is then refused (`SessionBusy`). A
session that has ended is replaced, and the call that finds this out says so. Copies of the sandbox
have copies of both, because the sandbox copies its sessions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from wasmsand.sdk.backend import CANCELLATION, Cancellation
from wasmsand.sdk.errors import CommandError, SandboxError
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.session import Session
from wasmsand.sdk.shell import Shell
from wasmsand.tools.definitions import MAX_TIMEOUT_MS

AnySession = TypeVar("AnySession", bound=Session[Any])
_Result = TypeVar("_Result")


class SessionBusy(SandboxError):
    """Another call uses the session."""


@dataclass(frozen=True, slots=True)
class Words:
    """How messages name a session."""

    session: str
    state: str
    """What is lost when it ends."""


SHELL_WORDS: Final = Words("shell", "its variables and functions")
PYTHON_WORDS: Final = Words("interpreter", "its variables")


@dataclass(slots=True)
class Turn(Generic[AnySession]):
    """The use of a session by one call."""

    slot: Slot[AnySession]
    session: AnySession
    note: str | None = None
    """What the model has to know about the session before this call."""

    def run(self, request: Callable[[AnySession], _Result]) -> _Result:
        """Make a request. If the session had ended before it, make it in a new one."""
        try:
            return request(self.session)
        except CommandError as error:
            if error.errno_name != "ESRCH":
                raise
        self.session = self.slot.open()
        self.note = self.slot.new_one
        return request(self.session)


class Slot(Generic[AnySession]):
    """One session, and whose turn it is."""

    def __init__(
        self, kind: type[AnySession], make: Callable[[str | None], AnySession], words: Words
    ) -> None:
        """`make` starts a session in a directory."""
        self._kind = kind
        self._make = make
        self.words = words
        self._session: AnySession | None = None
        self._is_lost = False
        """Whether there was a session that the model does not know to have ended."""
        self.directory: str | None = None
        """Where a session that takes the place of one that has ended starts; None is the sandbox's
        working directory."""
        self._turn = threading.Lock()

    @property
    def new_one(self) -> str:
        """The note for a call that did not find the earlier session."""
        what = f"new {self.words.session}{self._place}"
        return f"{what}: the earlier one had ended, {self.words.state} are lost"

    @property
    def next_one(self) -> str:
        """The note for a call that has ended the session."""
        words = self.words
        return (
            f"the {words.session} has ended: {words.state} are lost, and the next call starts a "
            f"new one{self._place}"
        )

    @property
    def _place(self) -> str:
        return "" if self.directory is None else f" in {self.directory}"

    @property
    def identity(self) -> str | None:
        """By which the session is known in copies of the sandbox; None if there is no session."""
        session = self._session
        return None if session is None or session.closed else session.identity

    def adopt(self, identity: str | None, sessions: Mapping[str, Shell | PythonSession]) -> None:
        """Use the session that has this identity among those of a sandbox that was copied or
        restored."""
        found = None if identity is None else sessions.get(identity)
        self._session = found if isinstance(found, self._kind) else None
        self.directory = None
        self._is_lost = identity is not None and self._session is None

    def close(self) -> None:
        """End the session, even while a call uses it."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def open(self, *, fresh: bool = False) -> AnySession:
        """Start a session, and end the old one. The caller has the turn."""
        if self._session is not None:
            self._session.close()
        self._session = None
        if fresh:
            self.directory = None
        try:
            self._session = self._make(self.directory)
        except CommandError:
            if self.directory is None:
                raise
            self.directory = None  # it does not exist any more
            self._session = self._make(None)
        self._is_lost = False
        return self._session

    @contextmanager
    def turn(self, timeout_ms: float | None, *, fresh: bool) -> Iterator[Turn[AnySession]]:
        """Use the session, a `fresh` one if that is wanted. Raises `SessionBusy`."""
        seconds = (MAX_TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000
        if not self._turn.acquire(timeout=seconds):
            raise SessionBusy(
                f"the {self.words.session} is still busy with another call; wait for that call, or "
                "use sandbox_start for commands that run at the same time"
            )
        try:
            session, note = self._session, None
            if fresh:
                session = self.open(fresh=True)
            elif session is None or session.closed:
                was_lost = self._is_lost or session is not None
                session = self.open()
                note = self.new_one if was_lost else None
            used = Turn(self, session, note)
            yield used
            if used.session.closed:
                self._forget(used.session)
        finally:
            self._turn.release()

    def _forget(self, session: AnySession) -> None:
        """The model was told that the session has ended."""
        if self._session is session:
            self._session, self._is_lost = None, False


Identities = tuple[str | None, str | None]
"""The identities of the shell and of the interpreter."""


class LiveSessions:
    """The sessions of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.shell: Slot[Shell] = Slot(Shell, lambda cwd: sandbox.shell(cwd=cwd), SHELL_WORDS)
        self.python: Slot[PythonSession] = Slot(
            PythonSession, lambda cwd: sandbox.python(cwd=cwd), PYTHON_WORDS
        )

    def identities(self) -> Identities:
        """By which the sessions are known in copies of the sandbox."""
        return self.shell.identity, self.python.identity

    def adopt(self, identities: Identities) -> None:
        """Use the sessions that have these identities in the sandbox, which was copied or
        restored."""
        sessions = {session.identity: session for session in self._sandbox.sessions}
        self.shell.adopt(identities[0], sessions)
        self.python.adopt(identities[1], sessions)

    def adopt_existing(self) -> None:
        """Use the first shell and the first interpreter that the sandbox has already."""
        found: dict[str, str] = {}
        for session in self._sandbox.sessions:
            found.setdefault(session.kind, session.identity)
        self.adopt((found.get(Shell.kind), found.get(PythonSession.kind)))

    def close(self) -> None:
        """End both."""
        self.shell.close()
        self.python.close()


class Interrupter:
    """Ends the request that this thread makes, from another thread; the session stays."""

    def __init__(self) -> None:
        self._cancellation = Cancellation()

    def kill(self) -> None:
        """See `Killable`."""
        self._cancellation.cancel()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Calls in this block can be ended."""
        token = CANCELLATION.set(self._cancellation)
        try:
            yield
        finally:
            CANCELLATION.reset(token)
