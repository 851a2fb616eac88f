"""Advisory file locks: flock(2) and POSIX record locks.

Owns which lock is held on which inode, and by whom. Rules: a flock belongs to an open file
description and is released with it. A record lock belongs to a process and is released when the
process ends or closes any fd of the file. Neither prevents reads or writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import (
    LOCK_COST,
    LOCKED_FILE_COST,
    RECORD_LOCKS_MAX,
    RECORD_LOCKS_PER_FILE_MAX,
)
from wasmsand.kernel.vfs import Node
from wasmsand.kernel.wait import WaitQueue, WouldBlock

LOCK_SH: Final = 1
LOCK_EX: Final = 2
LOCK_NB: Final = 4
LOCK_UN: Final = 8
F_RDLCK: Final = 0
F_WRLCK: Final = 1
F_UNLCK: Final = 2
END_OF_FILE: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class RecordLock:
    """A locked range [start, end) of a file."""

    pid: int
    kind: int
    start: int
    end: int

    def conflicts(self, pid: int, kind: int, start: int, end: int) -> bool:
        """Whether this lock conflicts with the requested one."""
        if self.pid == pid or (self.kind == F_RDLCK and kind == F_RDLCK):
            return False
        return self.start < end and start < self.end


class _InodeLocks:
    __slots__ = ("changed", "holders", "owners", "records")

    def __init__(self) -> None:
        self.holders: dict[OpenFile, int] = {}
        self.records: list[RecordLock] = []
        self.owners: frozenset[int] = frozenset()
        """The pids that hold record locks."""
        self.changed = WaitQueue()


class FileLocks:
    """All advisory locks of a sandbox."""

    __slots__ = ("_inodes", "_ledger", "_record_count")

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger = ledger or Ledger()
        self._inodes: dict[Node, _InodeLocks] = {}
        self._record_count = 0

    def _of(self, node: Node) -> _InodeLocks:
        locks = self._inodes.get(node)
        if locks is None:
            self._ledger.add_object(LOCKED_FILE_COST, Errno.ENOLCK)
            locks = self._inodes[node] = _InodeLocks()
        return locks

    def _tidy(self, node: Node, locks: _InodeLocks) -> None:
        if not locks.holders and not locks.records:
            del self._inodes[node]
            self._ledger.drop_object(LOCKED_FILE_COST)

    def flock(self, file: OpenFile, node: Node, operation: int) -> None:
        """flock(2). A conversion first releases the existing lock, as on Linux."""
        wanted = operation & ~LOCK_NB
        if wanted not in (LOCK_SH, LOCK_EX, LOCK_UN):
            raise KernelError(Errno.EINVAL)
        if wanted == LOCK_UN:
            self.drop_description(file, node)
            return
        locks = self._of(node)
        # An exclusive lock has no other holders, so checking one of the others is enough.
        other = next((mode for holder, mode in locks.holders.items() if holder is not file), None)
        if other is not None and LOCK_EX in (other, wanted):
            self.drop_description(file, node)
            if operation & LOCK_NB:
                raise KernelError(Errno.EAGAIN)
            raise WouldBlock((locks.changed,))
        if file not in locks.holders:
            try:
                self._ledger.add_object(LOCK_COST, Errno.ENOLCK)
            except KernelError:
                self._tidy(node, locks)
                raise
        locks.holders[file] = wanted

    def drop_description(self, file: OpenFile, node: Node) -> None:
        """Release the description's lock."""
        locks = self._inodes.get(node)
        if locks is not None:
            if locks.holders.pop(file, None) is not None:
                self._ledger.drop_object(LOCK_COST)
                locks.changed.wake()
            self._tidy(node, locks)

    def find_conflict(
        self, pid: int, node: Node, kind: int, start: int, end: int
    ) -> RecordLock | None:
        """The lock that conflicts with this request (F_GETLK)."""
        locks = self._inodes.get(node)
        if locks is None:
            return None
        return next((r for r in locks.records if r.conflicts(pid, kind, start, end)), None)

    def set_record(
        self, pid: int, node: Node, kind: int, start: int, end: int, *, wait: bool
    ) -> None:
        """F_SETLK and F_SETLKW."""
        if kind == F_UNLCK and node not in self._inodes:
            return
        locks = self._of(node)
        if kind != F_UNLCK and self.find_conflict(pid, node, kind, start, end) is not None:
            if not wait:
                raise KernelError(Errno.EAGAIN)
            raise WouldBlock((locks.changed,))
        records: list[RecordLock] = []
        for record in locks.records:
            if record.pid != pid or record.end <= start or end <= record.start:
                records.append(record)
                continue
            if record.start < start:
                records.append(RecordLock(pid, record.kind, record.start, start))
            if end < record.end:
                records.append(RecordLock(pid, record.kind, end, record.end))
        if kind != F_UNLCK:
            records.append(RecordLock(pid, kind, start, end))
        try:
            self._replace(locks, records)
        finally:
            self._tidy(node, locks)

    def _replace(self, locks: _InodeLocks, records: list[RecordLock]) -> None:
        more = len(records) - len(locks.records)
        if more > 0:
            too_many = len(records) > RECORD_LOCKS_PER_FILE_MAX
            if too_many or self._record_count + more > RECORD_LOCKS_MAX:
                raise KernelError(Errno.ENOLCK)
            self._ledger.add_object(more * LOCK_COST, Errno.ENOLCK)
        else:
            self._ledger.drop_object(-more * LOCK_COST)
        self._record_count += more
        locks.records = records
        locks.owners = frozenset(record.pid for record in records)
        locks.changed.wake()

    def drop_process(self, pid: int, node: Node) -> None:
        """A process closed a file: release its record locks on that file."""
        locks = self._inodes.get(node)
        if locks is not None and pid in locks.owners:
            self._replace(locks, [record for record in locks.records if record.pid != pid])
            self._tidy(node, locks)
