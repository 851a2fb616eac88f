"""The store, on behalf of the workers.

Owns `StoreService`, which has the only `ServerStore` of the server. Rules: used from any thread. A
worker reaches only the states of its own slot, and only by descriptors that it is given: one file
to write, one to read. So workers need no access to the directory. A state that a worker was writing
when it died is dropped.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from wasmsand.http.store import Part, ServerStore, StoredState, StoreTotals, is_state_id
from wasmsand.http.workers.ledger import WorkerMisbehaves
from wasmsand.sdk.errors import StoreError

_PARTS_MAX: Final = 64
"""States that one worker writes at the same time."""

log = logging.getLogger("wasmsand.http")


class _Owned(msgspec.Struct):
    """The part of a record that the front process reads."""

    owner: str
    sandbox: str = ""
    """For a snapshot: its sandbox."""


@dataclass(slots=True)
class _Row:
    """A stored state."""

    kind: str
    owner: str
    size: int
    slot: object


class StoreService:
    """The store of a server with workers."""

    def __init__(self, store: ServerStore) -> None:
        self.store = store
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._rows: dict[str, _Row] = {}
        self._doomed: set[str] = set()
        """States of sandboxes that have ended, while the disk was full. Nobody sees them."""
        self._parts: dict[object, dict[int, Part]] = {}
        self._numbers = itertools.count(1)
        self._unknown = 0

    def load(self, slot_of: Callable[[str, str], object | None]) -> Iterator[tuple[str, str]]:
        """Assign every state to the slot that `slot_of` chooses by its owner and its sandbox;
        yields ids and owners. Use it before all else, to the end. States for which `slot_of` has
        none, or whose record is damaged, stay in the store, unseen."""
        for stored in self.store.all():
            try:
                owned = msgspec.json.decode(stored.record, type=_Owned)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                owned = _Owned("")
            slot = slot_of(owned.owner, owned.sandbox or stored.id)
            if slot is None:
                self._unknown += 1
            else:
                size = stored.size + len(stored.record)
                self._rows[stored.id] = _Row(stored.kind, owned.owner, size, slot)
                yield stored.id, owned.owner

    def stored_by(self, slot: object) -> set[str]:
        """The ids of a slot's states."""
        return set(self.owners_by(slot))

    def owners_by(self, slot: object) -> dict[str, str]:
        """The owners of a slot's states, by their ids."""
        with self._lock:
            rows = self._rows.items()
            return {identity: row.owner for identity, row in rows if row.slot is slot}

    def slot_of(self, identity: str) -> object:
        """The slot that has a stored sandbox or snapshot."""
        return self._rows[identity].slot

    def report(self) -> None:
        """Log what in the store is not usable."""
        store = self.store
        if store.leftovers:
            log.info("removed %d files of unfinished writes from the store", store.leftovers)
        for name in store.foreign:
            log.error("the store has a file that is not ours: states/%s", ascii(name))
        for identity in store.damaged:
            log.error("%s in the store is not usable: damaged index", ascii(identity))
        if self._unknown:
            log.error("the store has %d sandboxes and snapshots of unknown tokens", self._unknown)

    def died(self, slot: object) -> None:
        """The worker of a slot has died, and none of its calls is being answered any more: drop
        what it was writing."""
        with self._lock:
            parts = self._parts.pop(slot, {})
        for part in parts.values():
            self.store.abandon(part)

    def call(
        self, slot: object, tenant: str | None, name: str, values: dict[str, Any]
    ) -> tuple[Any, int | None]:
        """A call of the worker of `slot`. Returns a value and perhaps a descriptor. Raises
        `StoreError`, `WorkerMisbehaves`."""
        if name == "ids":
            return sorted(self.stored_by(slot)), None
        if name == "totals":
            return asdict(self._totals(str(values["owner"]))), None
        if name == "commit":
            return self._commit(slot, tenant, int(values["part"]), values["record"]), None
        if name == "abandon":
            self.store.abandon(self._take_part(slot, int(values["part"])))
            return None, None
        identity = str(values["identity"])
        self._check(slot, identity)
        if name == "begin":
            return self._begin(slot, identity)
        if name == "record":
            return self.store.record(identity), None
        if name == "state":
            return _plain(self.store.state(identity)), None
        if name == "write_record":
            self.store.write_record(identity, _record(values["record"]))
            return None, None
        if name == "open":
            with self.store.open(identity) as stream:
                return None, os.dup(stream.fileno())
        if name == "delete":
            with self._lock:
                if self._rows.pop(identity, None) is not None:
                    self._doomed.add(identity)
            self._delete_doomed()
            return None, None
        raise WorkerMisbehaves(name)

    def _delete_doomed(self) -> None:
        """Delete what has ended, and could not be deleted before. Raises `StoreError`."""
        with self._lock:
            doomed = list(self._doomed)
        for identity in doomed:
            self.store.delete(identity)
            with self._lock:
                self._doomed.discard(identity)

    def _check(self, slot: object, identity: str) -> None:
        with self._lock:
            row = self._rows.get(identity)
        if not is_state_id(identity) or (row is not None and row.slot is not slot):
            raise WorkerMisbehaves("the state of another worker")

    def _begin(self, slot: object, identity: str) -> tuple[int, int]:
        with self._lock:
            if len(self._parts.get(slot, {})) >= _PARTS_MAX:
                raise WorkerMisbehaves("too many states at once")
        part = self.store.begin(identity)
        with self._lock:
            number = next(self._numbers)
            self._parts.setdefault(slot, {})[number] = part
        return number, os.dup(part.stream.fileno())

    def _take_part(self, slot: object, number: int) -> Part:
        with self._lock:
            part = self._parts.get(slot, {}).pop(number, None)
        if part is None:
            raise WorkerMisbehaves("no such part")
        return part

    def _commit(self, slot: object, tenant: str | None, number: int, record: object) -> int:
        part, data = self._take_part(slot, number), _record(record)
        try:
            owned = msgspec.json.decode(data, type=_Owned)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.store.abandon(part)
            raise WorkerMisbehaves("record") from None
        if tenant is not None and owned.owner != tenant:
            self.store.abandon(part)
            raise WorkerMisbehaves("another tenant")
        kind = "snapshot" if part.identity.startswith("snap-") else "sandbox"
        size = self.store.commit(part, "snapshot" if kind == "snapshot" else "sandbox", data)
        with self._lock:
            self._rows[part.identity] = _Row(kind, owned.owner, size + len(data), slot)
            is_clean = not self._doomed
        if not is_clean:
            try:
                self._delete_doomed()  # the disk has room again
            except StoreError:
                pass  # not for long; the next commit tries again
        return size

    def _totals(self, owner: str) -> StoreTotals:
        with self._lock:
            rows = list(self._rows.values())
        own = [row for row in rows if row.owner == owner]
        return StoreTotals(
            own_bytes=sum(row.size for row in own),
            own_sandboxes=sum(row.kind == "sandbox" for row in own),
            own_snapshots=sum(row.kind == "snapshot" for row in own),
            bytes=sum(row.size for row in rows),
            sandboxes=sum(row.kind == "sandbox" for row in rows),
        )

    def close(self) -> None:
        """Let another server have the store."""
        self.store.close()


def _plain(state: StoredState) -> list[object]:
    return [state.id, state.kind, state.record, state.size, state.saved]


def _record(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise WorkerMisbehaves("record")
    return value
