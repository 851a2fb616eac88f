"""Advisory file locks: flock(2) and POSIX record locks.

Owns who holds which lock on which inode. Rules: a flock belongs to an open file
description and goes with it; a record lock belongs to a process and goes when the
process closes any fd of that file or ends; neither stops reads or writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
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
_RECORDS_MAX: Final = 1024
"""Record locks of one inode; more is ENOLCK."""
_ALL_RECORDS_MAX: Final = 16 * 1024
"""Record locks of a sandbox; more is ENOLCK."""


@dataclass(frozen=True, slots=True)
class RecordLock:
    """A locked range [start, end) of a file."""

    pid: int
    kind: int
    start: int
    end: int

    def conflicts(self, pid: int, kind: int, start: int, end: int) -> bool:
        """Whether another lock stands in the way of this request."""
        if self.pid == pid or (self.kind == F_RDLCK and kind == F_RDLCK):
            return False
        return self.start < end and start < self.end


class _InodeLocks:
    __slots__ = ("changed", "holders", "records")

    def __init__(self) -> None:
        self.holders: dict[OpenFile, int] = {}
        self.records: list[RecordLock] = []
        self.changed = WaitQueue()


class FileLocks:
    """All advisory locks of a sandbox."""

    __slots__ = ("_inodes", "_record_count")

    def __init__(self) -> None:
        self._inodes: dict[Node, _InodeLocks] = {}
        self._record_count = 0

    def _of(self, node: Node) -> _InodeLocks:
        locks = self._inodes.get(node)
        if locks is None:
            locks = self._inodes[node] = _InodeLocks()
        return locks

    def _tidy(self, node: Node, locks: _InodeLocks) -> None:
        if not locks.holders and not locks.records:
            self._inodes.pop(node, None)

    def flock(self, file: OpenFile, node: Node, operation: int) -> None:
        """flock(2); a change of mode gives the old lock up first, as on Linux."""
        wanted = operation & ~LOCK_NB
        if wanted not in (LOCK_SH, LOCK_EX, LOCK_UN):
            raise KernelError(Errno.EINVAL)
        locks = self._of(node)
        if wanted == LOCK_UN:
            self.drop_description(file, node)
            return
        others = [mode for holder, mode in locks.holders.items() if holder is not file]
        if any(mode == LOCK_EX or wanted == LOCK_EX for mode in others):
            self.drop_description(file, node)
            if operation & LOCK_NB:
                raise KernelError(Errno.EAGAIN)
            raise WouldBlock((locks.changed,))
        locks.holders[file] = wanted

    def drop_description(self, file: OpenFile, node: Node) -> None:
        """The description is closed or unlocked."""
        locks = self._inodes.get(node)
        if locks is not None:
            if locks.holders.pop(file, None) is not None:
                locks.changed.wake()
            self._tidy(node, locks)

    def find_conflict(
        self, pid: int, node: Node, kind: int, start: int, end: int
    ) -> RecordLock | None:
        """The lock that would stop this request (F_GETLK)."""
        locks = self._inodes.get(node)
        if locks is None:
            return None
        return next((r for r in locks.records if r.conflicts(pid, kind, start, end)), None)

    def set_record(
        self, pid: int, node: Node, kind: int, start: int, end: int, *, wait: bool
    ) -> None:
        """F_SETLK and F_SETLKW."""
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
        count = self._record_count - len(locks.records) + len(records)
        if len(records) > _RECORDS_MAX or count > _ALL_RECORDS_MAX:
            raise KernelError(Errno.ENOLCK)
        self._record_count = count
        locks.records = records
        locks.changed.wake()
        self._tidy(node, locks)

    def drop_process(self, pid: int, node: Node) -> None:
        """A process closed a file: its record locks on it are gone."""
        locks = self._inodes.get(node)
        if locks is not None:
            kept = [record for record in locks.records if record.pid != pid]
            if len(kept) != len(locks.records):
                self._record_count -= len(locks.records) - len(kept)
                locks.records = kept
                locks.changed.wake()
            self._tidy(node, locks)
