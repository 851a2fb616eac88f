"""A worker's way to the store, which the front process has.

Owns `WorkerStore`, a `StateStore`. Rules: used from any thread. A state is written to a file that
the front process has opened; it becomes the current one when the front process commits it. A
failure is a `StoreError`; what was stored before is unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO

from wasmsand.http.store import Kind, StoredState, StoreTotals
from wasmsand.http.workers.channel import Caller
from wasmsand.sdk.errors import StoreError


class WorkerStore:
    """The store, seen from a worker."""

    is_shared = True

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.leftovers = 0
        self.foreign: list[str] = []
        self.damaged: list[str] = []

    def all(self) -> Iterator[StoredState]:
        """See `ServerStore`."""
        for identity in self._caller.call("ids"):
            try:
                yield StoredState(*self._caller.call("state", identity=identity))
            except StoreError:
                self.damaged.append(identity)

    def record(self, identity: str) -> bytes:
        """See `ServerStore`."""
        return bytes(self._caller.call("record", identity=identity))

    def write(
        self, identity: str, kind: Kind, record: bytes, write: Callable[[IO[bytes]], None]
    ) -> int:
        """See `ServerStore`."""
        part, descriptor = self._caller.call_for_descriptor("begin", identity=identity)
        try:
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    write(stream)
            except OSError as error:
                reason = error.strerror or str(error)
                raise StoreError(f"cannot store {identity}: {reason}") from error
        except BaseException:
            self._caller.call("abandon", part=part)
            raise
        return int(self._caller.call("commit", part=part, record=record))

    def write_record(self, identity: str, record: bytes) -> None:
        """See `ServerStore`."""
        self._caller.call("write_record", identity=identity, record=record)

    def open(self, identity: str) -> IO[bytes]:
        """See `ServerStore`."""
        _, descriptor = self._caller.call_for_descriptor("open", identity=identity)
        return os.fdopen(descriptor, "rb")

    def delete(self, identity: str) -> None:
        """See `ServerStore`."""
        self._caller.call("delete", identity=identity)

    def totals(self, owner: str) -> StoreTotals:
        """See `StateStore`."""
        return StoreTotals(**self._caller.call("totals", owner=owner))

    def close(self) -> None:
        """Nothing is open."""
