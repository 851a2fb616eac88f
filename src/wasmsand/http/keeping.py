"""Keeps a server's sandboxes in its store.

Owns `Keeping`: when a sandbox is stored, paused and resumed. Rules: used on the event loop; what
waits for a sandbox or a disk runs on threads. A sandbox is stored soon after a request that may
have changed it, at most once per interval. One that was idle for `idle_pause` seconds is paused:
stored, and ended in memory. The next request that needs it resumes it; requests that come meanwhile
wait for the same resume. `entry.changing` is held while a sandbox is stored, paused, resumed or
forgotten, so a killed sandbox cannot come back. A failure is logged and tried again later; the
sandbox goes on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.network_ceilings import within_ceiling
from wasmsand.http.registry import Entry
from wasmsand.http.served import ServedSandbox
from wasmsand.http.snapshots import ServedSnapshot
from wasmsand.http.started import Started
from wasmsand.http.store import StateStore
from wasmsand.http.store_work import StoreWork
from wasmsand.http.stored_state import TakenState, take_for_store
from wasmsand.http.tokens import Token
from wasmsand.sdk.errors import SandboxError, StateError
from wasmsand.sdk.local_files import is_same
from wasmsand.sdk.network import Network

if TYPE_CHECKING:
    from wasmsand.http.service import Service

Result = TypeVar("Result")
INTERVAL_SECONDS: Final = 2.0
"""The shortest time between two writes of one sandbox."""
_INTERVAL_COSTS: Final = 10
"""It is at least so many times what the last write took."""
_STEP_SECONDS: Final = 0.25
_MOST_AT_ONCE: Final = 8
"""Sandboxes that are stored or paused in the background at the same time."""
_MOST_OF_ONE: Final = 2
"""Those of one token: its sandboxes may take long."""
_LONGEST_RETRY_SECONDS: Final = 30.0
_SNAPSHOT_AGE_SECONDS: Final = 1.0
"""A snapshot that a copy needs only for a moment is not stored."""
_LAST_SECONDS: Final = 6.0
"""At shutdown: time to store all sandboxes."""
_SESSIONS_SECONDS: Final = 10.0
"""How long to wait for the end of the requests of sessions."""
_ROOM_TRIES: Final = 4
_END_SECONDS: Final = 5.0
"""How long a pause waits until the sandbox has ended in memory."""
_OTHERS_IDLE_SECONDS: Final = 10.0
"""How long a sandbox of another token was idle before it is paused to make room."""

log = logging.getLogger("wasmsand.http")


class Keeping:
    """The store of a server, and what is in it."""

    def __init__(self, service: Service, store: StateStore) -> None:
        self._service = service
        self._work = StoreWork(service, store)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Work in the background, by the id of its sandbox or snapshot."""
        self._owners: dict[str, str] = {}
        """The names of the tokens for which it is done."""
        self._waking: dict[str, asyncio.Task[None]] = {}
        self._last_states: dict[str, object] = {}
        """The stored states of sandboxes in which something runs."""

    def load(self) -> None:
        """Register everything that the store has."""
        self._work.load()

    async def run(self) -> None:
        """Store and pause sandboxes in the background, without end."""
        while True:
            await asyncio.sleep(_STEP_SECONDS)
            now = time.monotonic()
            for entry in self._service.registry:
                for kept in list(entry.snapshots.values()):
                    self._store_snapshot_soon(entry.owner, kept)
                if entry.live is not None:
                    self._look_at(entry, now)
            for owner, kept in list(self._service.registry.orphans.values()):
                self._store_snapshot_soon(owner, kept)

    def _look_at(self, entry: Entry, now: float) -> None:
        if now < entry.next_store:
            return
        idle_pause = self._service.settings.idle_pause
        is_changed = entry.changes != entry.stored_changes or entry.id in self._last_states
        if not entry.uses and now - entry.last_used >= idle_pause:
            self._in_background(entry.id, entry.owner, entry, self.pause(entry, own_uses=0))
        elif is_changed:
            self._in_background(entry.id, entry.owner, entry, self.store(entry))

    def _store_snapshot_soon(self, owner: Token, kept: ServedSnapshot) -> None:
        is_new = kept.snapshot is not None and kept.stored_bytes is None
        age = time.time() - kept.created
        if is_new and not kept.cannot_store and age > _SNAPSHOT_AGE_SECONDS:
            self._in_background(kept.id, owner, None, self._store_snapshot(owner, kept))

    def _in_background(
        self, identity: str, owner: Token, entry: Entry | None, work: Coroutine[Any, Any, None]
    ) -> None:
        of_owner = sum(name == owner.name for name in self._owners.values())
        most = _MOST_AT_ONCE if self._service.tokens.is_open else _MOST_OF_ONE
        if identity in self._tasks or of_owner >= most or len(self._tasks) >= _MOST_AT_ONCE:
            work.close()
            return

        async def quietly() -> None:
            try:
                await work
                if entry is not None:
                    entry.failures = 0
            except Exception as error:
                self._note_failure(identity, entry, error)
            finally:
                self._tasks.pop(identity, None)
                self._owners.pop(identity, None)

        self._owners[identity] = owner.name
        self._tasks[identity] = asyncio.create_task(quietly())

    def _note_failure(self, identity: str, entry: Entry | None, error: Exception) -> None:
        is_usual = type(error) is StateError or (entry is not None and entry.has_ended)
        if failure_of(error) is None and not is_usual:
            log.error("bug while storing %s", identity, exc_info=error)
        elif not is_usual:
            log.warning("%s is not stored: %s", identity, error)
        if entry is not None:
            entry.failures += 1
            wait = min(INTERVAL_SECONDS * 2 ** min(entry.failures, 10), _LONGEST_RETRY_SECONDS)
            entry.next_store = time.monotonic() + wait

    # Storing.

    async def store(self, entry: Entry, *, is_last: bool = False) -> None:
        """Store a sandbox as it is now. Raises `StateError`, `quota_exceeded`."""
        async with entry.changing:
            if entry.live is None or entry.has_ended:
                return
            began = time.monotonic()
            changes = entry.changes
            taken = await self._taken(entry, is_last=is_last)
            before = self._last_states.pop(entry.id, None)
            if changes != entry.stored_changes or not is_same(taken.state.machine, before):
                await self._write(entry, taken)
                entry.stored_changes = changes
            if not taken.is_silent:  # it will change without requests
                self._last_states[entry.id] = taken.state.machine
            now = time.monotonic()
            entry.next_store = now + max(INTERVAL_SECONDS, (now - began) * _INTERVAL_COSTS)

    async def _taken(
        self, entry: Entry, *, is_last: bool = False, requires_silence: bool = False
    ) -> TakenState:
        """The state of a sandbox. Meanwhile, requests to its sessions wait."""
        sandbox = entry.sandbox
        commands = sandbox.all_started()
        if not is_last:
            # While a sandbox is being paused, requests wait: do not let them wait for long.
            await self._wait_for_sessions(commands, 0.0 if requires_silence else _SESSIONS_SECONDS)
        busy = [each for each in commands if not each.is_idle]
        held = [each for each in commands if each.is_idle]
        for each in held:
            each.hold()
        try:
            taken = await self._work.in_thread(
                lambda: take_for_store(
                    sandbox, held, busy, is_last=is_last, requires_silence=requires_silence
                )
            )
            for each in held:
                each.put_back(taken.outputs.get(each.id, ()))
            return taken
        finally:
            for each in held:
                each.let_go()

    async def _wait_for_sessions(self, commands: list[Started], seconds: float) -> None:
        """Wait until no session of a client runs a request. Raises `StateError`."""
        sessions = [each for each in commands if each.session is not None]
        until = time.monotonic() + seconds
        for each in sessions:
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    await each.wait_until_idle()
            except TimeoutError:
                raise StateError("a session runs a request") from None
        if not all(each.is_idle for each in sessions):
            raise StateError("a session runs a request")

    async def _write(self, entry: Entry, taken: TakenState) -> Network | None:
        network = await self._work.network_of(entry)
        await self._work.write(entry, taken, network)
        return network

    async def _store_snapshot(self, owner: Token, kept: ServedSnapshot) -> None:
        try:
            await self._work.write_snapshot(owner, kept)
        except BaseException:
            kept.cannot_store = True
            raise
        if kept.id in self._service.registry.orphans:
            self._service.drop_from_memory(owner, kept)

    # Pausing.

    async def pause(self, entry: Entry, *, drops: bool = False, own_uses: int = 1) -> None:
        """Store a sandbox and end it in memory. `own_uses` requests that use it are the caller's.
        Raises `sandbox_busy`, and `StateError` if anything runs, unless it `drops` that."""
        async with entry.changing:
            if entry.live is None or entry.has_ended:
                return
            if entry.uses > own_uses:
                raise ApiFailure(
                    409, "sandbox_busy", "other requests use the sandbox; try again", retry_after=1
                )
            entry.pausing = asyncio.get_running_loop().create_future()
            try:
                await self._pause(entry, entry.live, drops=drops)
            finally:
                entry.pausing.set_result(None)
                entry.pausing = None

    async def _pause(self, entry: Entry, sandbox: ServedSandbox, *, drops: bool) -> None:
        taken = await self._taken(entry, is_last=drops, requires_silence=not drops)
        for kept in list(entry.snapshots.values()):
            if kept.snapshot is not None and kept.stored_bytes is None:
                await self._work.write_snapshot(entry.owner, kept)
        network = await self._write(entry, taken)
        if entry.has_ended:
            return  # whoever ended it ends the rest
        entry.stored_changes = entry.changes
        self._last_states.pop(entry.id, None)
        entry.live, entry.network = None, network
        # Whoever needs the place of this sandbox finds it free.
        await asyncio.wait({self._service.end_in_memory(entry, sandbox)}, timeout=_END_SECONDS)

    # Resuming.

    async def wake(self, entry: Entry, *, only_files: bool = False) -> None:
        """Resume a paused sandbox, once for all that wait. Raises `StateError`, `secrets_needed`
        and what creating a sandbox raises."""
        while (entry.live is None or entry.pausing is not None) and not entry.has_ended:
            if entry.pausing is not None:
                await asyncio.shield(entry.pausing)
                continue
            task = self._waking.get(entry.id)
            if task is None:
                task = asyncio.create_task(self._resume(entry, only_files=only_files))
                self._waking[entry.id] = task
                task.add_done_callback(lambda done: self._woken(entry, done))
            await asyncio.shield(task)
        if entry.has_ended:
            self._service.registry.find(entry.owner, entry.id)

    def _woken(self, entry: Entry, done: asyncio.Task[None]) -> None:
        self._waking.pop(entry.id, None)
        if not done.cancelled():
            done.exception()  # those who wait have it

    async def _resume(self, entry: Entry, *, only_files: bool) -> None:
        async with entry.changing:
            if entry.live is not None or entry.has_ended:
                return
            if entry.missing_secrets:
                raise ApiFailure(
                    409,
                    "secrets_needed",
                    "secrets are not stored, and the server was restarted: resume the sandbox with "
                    f"its network and the secrets for {', '.join(entry.missing_secrets)[:200]} "
                    "(POST …/resume, or Sandbox.connect with id and options)",
                )
            service, owner = self._service, entry.owner
            began = time.monotonic()
            network = None
            if entry.network is not None:
                network = within_ceiling(entry.network, service, owner)
            await self.reserve(owner, entry.reserved_bytes, entry.id)
            try:
                record = await self._work.in_thread(lambda: self._work.record(entry))
                loaded = await service.in_file_thread(
                    owner,
                    entry.id,
                    lambda: self._work.loaded(entry, network, only_files=only_files),
                )
            except BaseException:
                service.quotas.release_sandbox(owner, entry.reserved_bytes)
                raise
            entry.live = self._work.revived(loaded, record)
            entry.options = loaded.options
            entry.stored_changes = entry.changes
            entry.last_used = time.monotonic()
            entry.account.begin(entry.last_used)
            service.metrics.resume_seconds.observe(time.monotonic() - began)
            if entry.has_ended:
                sandbox, entry.live = entry.live, None
                service.end_in_memory(entry, sandbox)

    async def reserve(self, owner: Token, size: int, identity: str) -> None:
        """Reserve a sandbox; if there is no room, pause idle ones first. Raises what
        `reserve_sandbox` raises."""
        quotas, tried = self._service.quotas, set[str]()
        for _ in range(_ROOM_TRIES):
            try:
                await quotas.reserve(owner, size, identity)
                return
            except ApiFailure as failure:
                others = failure.code == "server_full"
                idle = self._longest_idle(owner.name, tried, others=others)
                if idle is None:
                    raise
            tried.add(idle.id)
            with suppress(ApiFailure, SandboxError):
                await self.pause(idle, own_uses=0)
        await quotas.reserve(owner, size, identity)

    async def make_room(self, owner: str, *, others: bool) -> bool:
        """Pause the sandbox of a token, or of `others` too, that has been idle for longest. False
        if there is none."""
        tried = set[str]()
        for _ in range(_ROOM_TRIES):
            idle = self._longest_idle(owner, tried, others=others)
            if idle is None:
                return False
            tried.add(idle.id)
            with suppress(ApiFailure, SandboxError):
                await self.pause(idle, own_uses=0)
            if idle.live is None:
                return True
        return False

    def _longest_idle(self, owner: str, tried: set[str], *, others: bool) -> Entry | None:
        """The next sandbox to pause. One that is being stored is taken only if there is no other:
        `pause` waits for that, which is no use of the sandbox."""
        recent = time.monotonic() - _OTHERS_IDLE_SECONDS
        found = [
            entry
            for entry in self._service.registry
            if entry.live is not None and not entry.uses
            if entry.id not in tried
            if entry.owner.name == owner or (others and entry.last_used < recent)
        ]
        return min(
            found, key=lambda entry: (entry.changing.locked(), entry.last_used), default=None
        )

    # Ending.

    async def forget(self, entry: Entry) -> None:
        """A sandbox has ended: remove it from the store. Its stored snapshots stay."""
        async with entry.changing:
            self._last_states.pop(entry.id, None)
            await self._work.delete(entry.id)

    async def forget_snapshot(self, kept: ServedSnapshot) -> None:
        """Remove a snapshot from the store."""
        self._service.quotas.forget(kept.id)
        task = self._tasks.get(kept.id)
        if task is not None:
            await asyncio.wait({task})
        if kept.stored_bytes is not None:
            await self._work.delete(kept.id)

    async def update(self, entry: Entry) -> None:
        """Store a new end or new metadata of a sandbox. Raises `StoreError`."""
        async with entry.changing:
            if not entry.has_ended:
                await self._work.write_record(entry)

    async def store_all(self) -> None:
        """The server ends: store all sandboxes that have changed, for a bounded time."""
        entries = [entry for entry in self._service.registry if entry.live is not None]
        gate = asyncio.Semaphore(_MOST_AT_ONCE)

        async def store(entry: Entry) -> None:
            async with gate:
                if entry.changes == entry.stored_changes and entry.id not in self._last_states:
                    return
                try:
                    await self.store(entry, is_last=True)
                except Exception as error:
                    if not entry.has_ended:
                        log.warning("the last changes of %s are not stored: %s", entry.id, error)

        tasks = [asyncio.create_task(store(entry)) for entry in entries]
        snapshots = [
            (entry.owner, kept) for entry in entries for kept in entry.snapshots.values()
        ] + [*self._service.registry.orphans.values()]
        for owner, kept in snapshots:
            if kept.snapshot is not None and kept.stored_bytes is None and not kept.cannot_store:
                tasks.append(asyncio.create_task(self._quietly(self._store_snapshot(owner, kept))))
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_LAST_SECONDS)
            for task in late:
                task.cancel()
            if late:
                log.warning("%d sandboxes could not be stored in time", len(late))

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            log.warning("a snapshot is not stored: %s", error)

    def copy_file(self, kept: ServedSnapshot, target: IO[bytes]) -> None:
        """Write the file of a stored snapshot to `target`. Call it on a thread."""
        self._work.copy_file(kept, target)

    async def check_snapshots(self, owner: Token) -> None:
        """Raises `quota_exceeded` if the token may have no more snapshots in the store."""
        await self._work.check_snapshots(owner)

    def opener(self, owner: Token, kept: ServedSnapshot) -> Callable[[], ServedSandbox]:
        """Makes a sandbox from a stored snapshot; call it on a thread. Raises `secrets_needed`."""
        network = kept.options.network
        if kept.secret_hosts:
            raise ApiFailure(
                409,
                "secrets_needed",
                "the snapshot is of a sandbox with secrets for a network, which are not stored",
            )
        if network is not None:
            network = within_ceiling(network, self._service, owner)
        return lambda: self._work.opened(owner, kept, network)

    async def check_room(self, owner: Token) -> None:
        """Raises `quota_exceeded` if the token may have no more sandboxes in the store."""
        await self._work.check_room(owner)

    def close(self) -> None:
        """Let another server have the store."""
        self._work.close()

    async def in_thread(self, call: Callable[[], Result]) -> Result:
        """Run a call that waits for the store."""
        return await self._work.in_thread(call)
