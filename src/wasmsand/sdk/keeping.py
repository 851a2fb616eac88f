"""Keeps a named sandbox in its store.

Owns `Keeper`: when the state of a sandbox is written, and pausing. Rules: a change is written soon
after it was made, at most once per interval, on a thread of its own; the last one when the sandbox
ends. What is written is the sandbox at one moment. Commands that run then are not part of it;
sessions are, so writing waits until none runs a request. A session that cannot be copied (it has
threads or child processes) is left out. A failure to write in the background is logged, and tried
again; a failure at the end is raised, and the sandbox stays.

Whether files have changed is known exactly: a frozen tree that has not changed has the same layers.
Every use of a session or of the environment counts as a change.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.errors import SandboxClosedError, StateError, StoreError
from wasmsand.sdk.state import SandboxState, SavedSession, require_silence
from wasmsand.sdk.stores import Claim

if TYPE_CHECKING:
    from logging import Logger

    from wasmsand.sdk.python_session import PythonSession
    from wasmsand.sdk.shell import Shell


def _log() -> Logger:
    import logging  # only sandboxes with a name need it

    return logging.getLogger("wasmsand.sdk")


INTERVAL_SECONDS: Final = 2.0
"""The shortest time between two writes of one sandbox."""
_INTERVAL_COSTS: Final = 10
"""It is at least so many times what the last write took."""
_SOON_SECONDS: Final = 0.25
"""How long after its first change a sandbox is written."""
_STEP_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Kept:
    """The parts of a sandbox that are kept. The sandbox itself may be collected."""

    attachment: Attachment
    env: Environment
    sessions: list[Shell | PythonSession]

    def live_sessions(self) -> list[Shell | PythonSession]:
        """The sessions that have not ended."""
        return [session for session in self.sessions if not session.closed]


class Keeper:
    """Writes the states of one sandbox."""

    def __init__(self, kept: Kept, claim: Claim, owner: object) -> None:
        """`owner` is the sandbox; when it is collected, the last state is written."""
        self._kept = kept
        self._claim = claim
        self._process = os.getpid()
        self._saving = threading.RLock()
        """Held while a state is taken and written."""
        self.capturing = threading.RLock()
        """Held while sessions are still. Whoever copies the sandbox in another way takes it too, so
        that it does not find a session busy."""
        self._saver: int | None = None
        """The thread that does so now; its own uses do not count."""
        self._wake = threading.Event()
        self._uses = 0
        self._saved_uses = -1
        self._saved_state: object = None
        self._is_abandoned = self._ended = False
        kept.attachment.on_use = self._used
        weakref.finalize(owner, _abandon, weakref.ref(self)).atexit = False
        _keepers.add(self)
        # Registered last, so that it is called before the engine ends its guests.
        atexit.unregister(_end_all)
        atexit.register(_end_all)
        threading.Thread(target=self._work, name="wasmsand-keeper", daemon=True).start()

    @property
    def name(self) -> str:
        """The name of the sandbox in its store."""
        return self._claim.name

    def _used(self) -> None:
        if threading.get_ident() != self._saver:
            self._uses += 1
            if not self._wake.is_set():
                self._wake.set()

    # For the sandbox.

    def save(self) -> None:
        """Write the state now. Raises `StateError`, also if a session runs a request."""
        if not self._kept.attachment.paused:
            self._save()

    def pause(self, *, drops: bool) -> None:
        """Write the state, and free everything until the next use. Raises `StateError` if anything
        runs, unless it `drops` that."""
        kept = self._kept
        with self._saving, self.capturing, ExitStack() as held:
            if kept.attachment.paused:
                return
            sessions = kept.live_sessions()
            for session in sessions:
                held.enter_context(session._still())
            if not drops:
                require_silence(kept.attachment.backend, {session.pid for session in sessions})
            self._save(held=held, is_strict=not drops)
            kept.attachment.pause(self._resume)

    def end(self, *, discards: bool = False) -> None:
        """End the sandbox, after its last state was written, unless it `discards` that. Raises
        `StateError`; then the sandbox goes on."""
        attachment = self._kept.attachment
        if self._process != os.getpid() or self._ended:
            return
        with self._saving:
            if not discards and not attachment.closed and not attachment.paused:
                self._save(is_last=True)
            self._ended = True
            attachment.close()
            self._claim.release()
        self._wake.set()

    # Writing.

    def _save(
        self, *, held: ExitStack | None = None, is_last: bool = False, is_strict: bool = False
    ) -> bool:
        """Write the state if it has changed. False if there will be more to write: a command still
        runs, or something has changed meanwhile. `held` has made the sessions still."""
        with self._saving:
            self._saver = threading.get_ident()
            try:
                uses, backend = self._uses, self._kept.attachment.backend
                sessions = self._kept.live_sessions()
                silent = _is_silent(backend, {session.pid for session in sessions})
                if uses != self._saved_uses or not self._is_saved(backend):
                    with self.capturing, ExitStack() as mine:
                        state = self._taken(backend, held or mine, held is None, is_last, is_strict)
                    self._write(state)
                    self._saved_uses, self._saved_state = uses, state.machine
                return silent and (is_last or self._is_saved(backend))
            finally:
                self._saver = None

    def _is_saved(self, backend: Backend) -> bool:
        from wasmsand.sdk.local_files import is_same

        return is_same(backend.take_state(()), self._saved_state)

    def _taken(
        self, backend: Backend, held: ExitStack, makes_still: bool, is_last: bool, is_strict: bool
    ) -> SandboxState:
        # Imported here, because this module is imported with the SDK.
        from wasmsand.sdk.local_files import require_savable

        saved: list[SavedSession] = []
        for session in self._kept.live_sessions():
            if makes_still:
                try:
                    held.enter_context(session._still())
                except StateError:
                    if not is_last and not session.closed:
                        raise
                    continue
            try:
                captured = session._capture(backend)
                require_savable(captured)
            except StateError as error:
                if is_strict:
                    raise
                _log().info("%r is kept without a %s session: %s", self.name, session.kind, error)
                continue
            saved.append(SavedSession(session.kind, session.identity, captured))
        machine = backend.take_state([session.captured for session in saved])
        return SandboxState(self._kept.attachment.options, backend, machine, tuple(saved))

    def _write(self, state: SandboxState) -> None:
        # Imported here, because this module is imported with the SDK.
        from wasmsand.sdk.local_files import write_local

        def write(stream: IO[bytes]) -> None:
            write_local(state, self.name, stream)

        self._claim.write(write)

    def _work(self) -> None:
        """The thread that writes in the background."""
        while not self._ended and not self._is_abandoned:
            self._wake.wait()
            self._sleep_until(time.monotonic() + _SOON_SECONDS)
            # Whatever is set from here on is seen at the next `wait`.
            self._wake.clear()
            began = time.monotonic()
            finished = self._try_to_save()
            took = time.monotonic() - began
            self._sleep_until(began + max(INTERVAL_SECONDS, took * _INTERVAL_COSTS))
            if not finished:
                self._wake.set()
        if not self._ended:
            self._end_abandoned()

    def _sleep_until(self, when: float) -> None:
        """Sleep, in short steps: a sandbox that was collected ends soon."""
        while not self._ended and not self._is_abandoned and time.monotonic() < when:
            time.sleep(_STEP_SECONDS)

    def _try_to_save(self) -> bool:
        attachment = self._kept.attachment
        try:
            with self._saving:
                return self._ended or attachment.closed or attachment.paused or self._save()
        except SandboxClosedError:
            return True
        except StoreError as error:
            _log().warning("%s", error)
        except StateError:
            pass  # a session runs a request
        except Exception:
            _log().exception("the sandbox %r could not be saved", self.name)
        return False

    def _end_abandoned(self) -> None:
        try:
            self.end()
        except StateError as error:
            _log().warning("%s", error)
            self.end(discards=True)

    def abandon(self) -> None:
        """The sandbox was collected."""
        self._is_abandoned = True
        self._wake.set()

    # Resuming.

    def _resume(self) -> Backend:
        """The backend of a paused sandbox, made from the store."""
        from wasmsand.sdk.local_files import read_local

        kept = self._kept
        with self._saving:
            if self._ended:
                raise SandboxClosedError("the sandbox was killed; create a new Sandbox")
            stream = self._claim.read()
            if stream is None:
                raise StoreError(f"the state of {self.name!r} is missing")
            with stream:
                state, _ = read_local(stream, kept.attachment.options)
            backend = state.backend
            known = {session.identity: session for session in kept.sessions}
            try:
                processes = [
                    backend.adopt(saved.captured, is_last=True) for saved in state.sessions
                ]
            except BaseException:
                backend.close()
                raise
            for saved, process in zip(state.sessions, processes, strict=True):
                session = known.pop(saved.identity, None)
                if session is not None:
                    session._continue_as(process)
            for left in known.values():
                left._be_left_behind()
            kept.env._use(backend.variables)
            self._saved_uses, self._saved_state = self._uses, None
            return backend


def _is_silent(backend: Backend, sessions: set[int]) -> bool:
    return all(process.command_pid in sessions for process in backend.processes())


_keepers: Final[weakref.WeakSet[Keeper]] = weakref.WeakSet()


def _abandon(keeper: weakref.ref[Keeper]) -> None:
    found = keeper()
    if found is not None:
        found.abandon()


def _end_all() -> None:
    """This process exits: write what the background threads have not."""
    for keeper in list(_keepers):
        try:
            keeper.end()
        except Exception as error:
            _log().warning("the last changes of %r are not saved: %s", keeper.name, error)
