"""The workers: start, watch, replace, stop.

Owns `Crew`, and each worker's process and channels. Rules: used on the event loop of the main
thread, because the system ends a worker with the thread that started it. A worker that ends without
being told, or does not answer for `_HANG_SECONDS`, is replaced at once; one that keeps ending soon
after its start is replaced ever more slowly. Its end is settled when its last call to the store is
done: only then it is decided which sandboxes are lost, and the next worker starts. So nothing that
a dead worker has asked for happens later. A worker inherits three sockets and no variable of the
server that it does not need.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from wasmsand.confinement.environment import child_environment
from wasmsand.http.failures import ApiFailure
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import Token
from wasmsand.http.workers.channel import Calls, ChannelClosed
from wasmsand.http.workers.frames import ANSWER, ASK, ROOM, Lost, frame
from wasmsand.http.workers.ledger import Ledger
from wasmsand.http.workers.slot import Slot, WorkerLost
from wasmsand.http.workers.store_service import StoreService

_PING_SECONDS: Final = 5.0
_HANG_SECONDS: Final = 60.0
_QUICK_SECONDS: Final = 5.0
"""A worker that ends sooner is replaced more slowly."""
_LONGEST_PAUSE_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 9.0
"""How long a worker may take to store its sandboxes and to end."""
_ROOM_SECONDS: Final = 15.0
"""How long another worker may take to pause an idle sandbox."""
_ROOM_STEPS: Final = 20
_ROOM_STEP_SECONDS: Final = 0.05
_MODULE: Final = "wasmsand.cli.serve_worker"

log = logging.getLogger("wasmsand.http")


class Crew:
    """All workers of a server."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        store: StoreService | None,
        on_death: Callable[[int], None],
    ) -> None:
        """`on_death` is called when a worker has died and that is settled, with the number of
        sandboxes that are lost."""
        self._settings = settings
        self._ledger = ledger
        self._store = store
        self._on_death = on_death
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots: dict[str | None, list[Slot]] = {}
        for tenant in self._tenants():
            first = sum(map(len, self._slots.values()))
            self._slots[tenant] = [Slot(first + n, tenant) for n in range(settings.workers)]

    def _tenants(self) -> list[str | None]:
        if not self._settings.tenant_workers or not self._settings.tokens:
            return [None]
        return [token.name for token in self._settings.tokens]

    def __iter__(self) -> Iterator[Slot]:
        return iter([slot for slots in self._slots.values() for slot in slots])

    def slots_of(self, tenant: str) -> list[Slot]:
        """The slots that may serve a token."""
        own = self._slots.get(tenant)
        return own if own is not None else next(iter(self._slots.values()))

    def slot_of(self, identity: str, tenant: str) -> Slot:
        """The slot of a sandbox or a snapshot; any that may serve the token if none has it."""
        account, slots = self._ledger.home(identity), self.slots_of(tenant)
        return next((slot for slot in slots if slot.account is account), slots[0])

    def least_loaded(self, tenant: str) -> Slot:
        """The slot for a new sandbox."""
        slots = self.slots_of(tenant)
        ready = [slot for slot in slots if slot.ready.is_set()]
        return min(ready or slots, key=lambda slot: slot.load)

    # Starting.

    def start(self) -> None:
        """Start the workers. With workers of tenants, those that have nothing stored are started
        by their first request."""
        for slot in self:
            if slot.tenant is None or self._has_stored(slot):
                self.ensure(slot)
        self._task(self._ping_all())

    def _has_stored(self, slot: Slot) -> bool:
        return self._store is not None and bool(self._store.stored_by(slot))

    def ensure(self, slot: Slot) -> None:
        """Start the worker of a slot if it has none."""
        if slot.process is None and not self._stopping and not slot.starts:
            self._launch(slot)

    def _launch(self, slot: Slot) -> None:
        link, ledger, store = (socket.socketpair() for _ in range(3))
        inherited = [pair[1].fileno() for pair in (link, ledger, store)]
        settings = self._settings
        full = settings.index_installs  # pip needs the user's settings
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, *map(str, inherited), str(os.getpid())],
            stdin=subprocess.PIPE,
            pass_fds=inherited,
            env=child_environment(proxy=True, everything=full),
            start_new_session=True,
        )
        for pair in (link, ledger, store):
            pair[1].close()
        slot.process, slot.starts = process, slot.starts + 1
        slot.link = link[0]
        slot.link.setblocking(False)
        Calls(ledger[0], self._ledger_handler(slot, process))
        store_calls: Calls | None = None
        if self._store is not None:
            service = self._store

            def handle(name: str, values: dict[str, Any]) -> tuple[Any, int | None]:
                return service.call(slot, slot.tenant, name, values)

            store_calls = Calls(store[0], handle)
        else:
            store[0].close()
        loop, began = asyncio.get_running_loop(), time.monotonic()
        told = pickle.dumps(_for_worker(settings, slot.tenant))

        def watch() -> None:
            assert process.stdin is not None
            try:
                with process.stdin as stdin:
                    stdin.write(told)
            except OSError:
                pass  # it has ended
            status = process.wait()
            try:
                loop.call_soon_threadsafe(self._ended, slot)
                if store_calls is not None:
                    store_calls.end()  # it may wait for the disk
                loop.call_soon_threadsafe(self._settle, slot, process.pid, status, began)
            except RuntimeError:
                pass  # the server has ended

        threading.Thread(target=watch, name="wasmsand-worker", daemon=True).start()

    def _ledger_handler(
        self, slot: Slot, process: subprocess.Popen[bytes]
    ) -> Callable[[str, dict[str, Any]], tuple[Any, int | None]]:
        loop = asyncio.get_running_loop()

        def handle(name: str, values: dict[str, Any]) -> tuple[Any, int | None]:
            done: Future[None] = Future()

            def work() -> None:
                try:
                    if slot.process is not process:
                        raise ChannelClosed
                    if name == "ready":
                        slot.barriers = tuple(map(str, values["barriers"]))
                        slot.ready.set()
                        log.info(
                            "worker %d (process %d) serves; barriers: %s",
                            slot.number,
                            process.pid,
                            ", ".join(slot.barriers) or "none",
                        )
                    else:
                        self._ledger.call(slot.account, name, values)
                    done.set_result(None)
                except ApiFailure as failure:
                    if name == "reserve" and self._store is not None:
                        self._task(self._reserve_with_room(slot, process, values, failure, done))
                    else:
                        done.set_exception(failure)
                except Exception as error:
                    done.set_exception(error)

            try:
                loop.call_soon_threadsafe(work)
            except RuntimeError:
                raise ChannelClosed from None
            return done.result(), None

        return handle

    async def _reserve_with_room(
        self,
        slot: Slot,
        process: subprocess.Popen[bytes],
        values: dict[str, Any],
        failure: ApiFailure,
        done: Future[None],
    ) -> None:
        """Let other workers pause an idle sandbox, and reserve again. The worker that asks does the
        same with its own sandboxes."""
        owner = str(values["owner"])
        for other in self.slots_of(owner):
            if other is slot or not other.ready.is_set():
                continue
            wanted = "others" if failure.code == "server_full" else "own"
            try:
                async with asyncio.timeout(_ROOM_SECONDS):
                    told = f"{ROOM} {wanted} {owner}".encode()
                    if await self.tell(other, told) != b"paused":
                        continue
            except (TimeoutError, WorkerLost, ApiFailure):
                continue
            for _ in range(_ROOM_STEPS):  # until the other worker has given its quota back
                if slot.process is not process:  # nobody would give the reservation back
                    done.set_exception(ChannelClosed())
                    return
                try:
                    self._ledger.call(slot.account, "reserve", values)
                    done.set_result(None)
                    return
                except ApiFailure as again:
                    failure = again
                except Exception as error:
                    done.set_exception(error)
                    return
                await asyncio.sleep(_ROOM_STEP_SECONDS)
        done.set_exception(failure)

    # Watching.

    @staticmethod
    def _ended(slot: Slot) -> None:
        """A worker has ended: from now on, requests wait for the next one."""
        slot.process = None
        slot.ended()

    def _settle(self, slot: Slot, pid: int, status: int, began: float) -> None:
        """Decide what is lost with a worker that has ended, and replace it."""
        stored: dict[str, str] = {}
        if self._store is not None:
            stored = self._store.owners_by(slot)
            self._store.died(slot)
        lost = self._ledger.died(slot.account, status, stored)
        slot.deaths += 1
        if self._stopping:
            return
        log.error(
            "worker %d (process %d) has ended with status %d; %d sandboxes are lost, %d come back "
            "from the store",
            slot.number,
            pid,
            status,
            lost,
            len(stored),
        )
        self._on_death(lost)
        is_quick = time.monotonic() - began < _QUICK_SECONDS
        slot.quick_deaths = slot.quick_deaths + 1 if is_quick else 0
        pause = min(0.5 * 2**slot.quick_deaths, _LONGEST_PAUSE_SECONDS) if is_quick else 0.0
        self._task(self._relaunch(slot, pause))

    async def _relaunch(self, slot: Slot, pause: float) -> None:
        await asyncio.sleep(pause)
        if not self._stopping:
            self._launch(slot)

    async def _ping_all(self) -> None:
        """Kill workers that do not answer: they are then replaced."""
        while True:
            await asyncio.sleep(_PING_SECONDS)
            for slot in self:
                if slot.ready.is_set() and slot.process is not None:
                    self._task(self._ping(slot, slot.process))

    async def _ping(self, slot: Slot, process: subprocess.Popen[bytes]) -> None:
        try:
            async with asyncio.timeout(_HANG_SECONDS):
                await self.tell(slot, b"ping")
        except TimeoutError:
            if slot.process is process:
                log.error("worker %d does not answer; it is replaced", slot.number)
                process.kill()
        except (WorkerLost, ApiFailure):
            pass  # it has ended

    async def tell(self, slot: Slot, what: bytes) -> bytes:
        """Tell a worker something, and return its answer. Raises `WorkerLost`, `ApiFailure`."""
        async with slot.connection() as worker:
            slot.in_flight -= 1  # this is no work for a client
            try:
                worker.write(frame(ASK, what))
                kind, answer = await worker.next()
                if kind == ANSWER:
                    slot.keep(worker)
                return answer
            except Lost:
                raise WorkerLost from None
            finally:
                slot.in_flight += 1

    async def use_tokens(self, tokens: Sequence[Token]) -> None:
        """Tell the workers which tokens there are."""
        self._settings = replace(self._settings, tokens=tuple(tokens))
        for tenant in self._tenants():
            if tenant not in self._slots:
                first = sum(map(len, self._slots.values()))
                self._slots[tenant] = [
                    Slot(first + n, tenant) for n in range(self._settings.workers)
                ]
        told = []
        for slot in self:
            if slot.ready.is_set():
                known = _for_worker(self._settings, slot.tenant).tokens
                if known:
                    told.append(self.tell(slot, b"tokens" + pickle.dumps(known)))
        await asyncio.gather(*told, return_exceptions=True)

    # Stopping.

    async def drain(self) -> None:
        """End all running requests: kill every sandbox; with a store, they are stored first."""
        for slot in self:
            slot.is_stopping = True
        told = [self.tell(slot, b"drain") for slot in self if slot.ready.is_set()]
        await asyncio.gather(*told, return_exceptions=True)

    async def stop(self) -> None:
        """Stop all workers. Those that take too long are killed."""
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()
        running = [slot.process for slot in self if slot.process is not None]
        for slot in self:
            slot.ended()
        until = time.monotonic() + _STOP_SECONDS
        while any(process.poll() is None for process in running):
            if time.monotonic() > until:
                for process in running:
                    if process.poll() is None:
                        log.error(
                            "the worker in process %d does not end; it is killed", process.pid
                        )
                        process.send_signal(signal.SIGKILL)
                return
            await asyncio.sleep(0.02)

    def _task(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _for_worker(settings: Settings, tenant: str | None) -> Settings:
    """What a worker needs to know: no token's digest, and nothing of the tokens that it does not
    serve."""
    tokens = tuple(
        replace(token, digest=b"")
        for token in settings.tokens
        if tenant is None or token.name == tenant
    )
    return replace(
        settings,
        tokens=tokens,
        tokens_file=None,
        playground=None,  # the front process has it
        otel=False,  # it exports for all
        workers=1,
        tenant_workers=False,
        host_memory=None,
        max_load=None,
    )
