"""Bringing a host directory to the kernel, which never waits.

Owns `HostWork`, which has work of one machine done on threads of its own, and `AskedTree`, an
`OutsideTree` made of a `HostDirectory` and a `HostWork`. Rules: the sandbox's lock is never held
while the host is asked. A guest's call orders the work, and waits (`OutsideWait`); its next attempt
takes the result. Each call remembers its orders until it ends, so no work is done twice for one
call. An operation of the host does the work on its own thread, and releases the lock meanwhile. A
machine has at most `_THREADS_MAX` threads here, so a host directory that hangs cannot take threads
from other machines. A thread of the guest has one order at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, TypeVar, cast

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.call_state import HeldByCall
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import Data
from wasmsand.kernel.vfs.outside import Facts, Listing, Move, Place
from wasmsand.kernel.wait import OutsideWait, WaitQueue, Yield
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.network.lookup import Workers

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel
    from wasmsand.machine.lock import SandboxLock
    from wasmsand.machine.mounts.host_changes import WritableDirectory
    from wasmsand.machine.mounts.host_directory import HostDirectory

_THREADS_MAX: Final = 4
_CURRENT_SECONDS: Final = 1.0
"""How long a guest may see what a look at the host has found, if the host starts no command."""
_Result = TypeVar("_Result")


class _Order:
    """Work that a guest's call waits for."""

    __slots__ = ("act", "began", "done", "ended", "error", "pinned", "result")

    def __init__(self, act: Callable[[], object], pinned: tuple[Place, ...]) -> None:
        self.act: Callable[[], object] | None = act
        self.pinned = pinned
        self.ended = WaitQueue()
        self.done = False
        self.began = 0.0
        self.result: object = None
        self.error: KernelError | None = None
        for place in pinned:
            place.pinned += 1

    def unpin(self, *, is_known: bool) -> None:
        """The call has taken the result, or will not. What it changed is then not known."""
        for place in self.pinned:
            if not is_known:
                place.doubt()
            place.unpin()
        self.pinned = ()


class _Orders(HeldByCall):
    """The orders of one call."""

    __slots__ = ("began", "by_key", "found_existing")

    def __init__(self, began: float) -> None:
        self.began = began
        self.by_key: dict[Hashable, _Order] = {}
        self.found_existing: set[Hashable] = set()

    def abandon(self) -> None:
        """The call has ended."""
        for order in self.by_key.values():
            order.unpin(is_known=False)
        self.by_key.clear()


class HostWork:
    """The work of one machine that waits for the host's files."""

    def __init__(self, lock: SandboxLock, kernel: Kernel) -> None:
        self._lock = lock
        self._kernel = kernel
        self._workers = Workers(_THREADS_MAX, "wasmsand-mount")
        self._looked = time.monotonic()
        self.seen_at = 0.0
        """When the host was asked for the latest result."""

    def look_again(self) -> None:
        """From now on, what was seen before counts as old."""
        self._looked = time.monotonic()

    def since(self) -> float:
        """See `OutsideTree`."""
        recent = max(self._looked, time.monotonic() - _CURRENT_SECONDS)
        if not self._lock.held_by_host:
            orders = self._orders()
            if orders is not None:
                # However slow the host is, one look suffices for one call.
                return min(recent, orders.began)
        return recent

    def _orders(self) -> _Orders | None:
        thread = self._kernel.current
        held = None if thread is None else thread.call.outside
        return held if isinstance(held, _Orders) else None

    def look(self, key: tuple[str, Place, object], act: Callable[[], _Result]) -> _Result:
        """Like `do`, for work that changes nothing. The place in `key` is what is looked at."""
        if self._lock.held_by_host:
            return self._without_lock(act, (key[1],))
        return self.do(key, act, ())

    def do(self, key: Hashable, act: Callable[[], _Result], pinned: tuple[Place, ...]) -> _Result:
        """The result of `act`, which blocks. Needs the sandbox's lock. The places in `pinned` are
        those that change."""
        if self._lock.held_by_host:
            return self._without_lock(act, pinned)
        thread = self._kernel.current
        assert thread is not None
        orders = self._orders()
        if orders is None:
            orders = thread.call.outside = _Orders(time.monotonic())
        order = orders.by_key.get(key)
        if order is None:
            order = orders.by_key[key] = _Order(act, pinned)
            self._submit(order)
        if not order.done:
            raise OutsideWait(order.ended)
        del orders.by_key[key]
        self.seen_at = order.began
        order.unpin(is_known=order.error is None)
        if order.error is not None:
            raise order.error
        return cast("_Result", order.result)

    def _without_lock(self, act: Callable[[], _Result], pinned: tuple[Place, ...]) -> _Result:
        """Do work for an operation of the host, which goes on afterwards where it was: so what it
        works on stays in the view."""
        lock = self._lock
        for place in pinned:
            place.pinned += 1
        lock.held_by_host = False
        lock.release()
        began = time.monotonic()
        try:
            return act()
        finally:
            lock.take_again()
            lock.held_by_host = True
            self.seen_at = began
            for place in pinned:
                place.unpin()

    def look_for_existing(self, key: Hashable, parent: Place) -> None:
        """A guest's call could not create a name that it does not see, because it exists. Let the
        call look at the directory again, once, when no other call is changing it."""
        orders = None if self._lock.held_by_host else self._orders()
        if orders is None or key in orders.found_existing:
            return
        if parent.pinned:
            # Another call has probably made it, and is about to take the result.
            parent.unpinned = parent.unpinned or WaitQueue()
            raise OutsideWait(parent.unpinned)
        orders.found_existing.add(key)
        raise Yield

    def give_way(self) -> None:
        """See `OutsideTree`."""
        if not self._lock.held_by_host:
            raise Yield
        self._without_lock(_nothing, ())

    def later(self, act: Callable[[], object]) -> None:
        """Have something done of which nobody needs the result."""
        self._workers.submit(lambda: _ignore(act))

    def _submit(self, order: _Order) -> None:
        act = order.act
        order.act = None
        assert act is not None
        lock = self._lock

        def work() -> None:
            result: object = None
            error: KernelError | None = None
            order.began = time.monotonic()
            try:
                result = act()
            except KernelError as failure:
                error = failure
            except Exception as failure:
                log_bug("host bug in a mount: %r", failure)
                error = KernelError(Errno.EIO)
            with lock:
                order.result, order.error, order.done = result, error, True
                order.ended.wake()

        self._workers.submit(work)


def _nothing() -> None:
    pass


def _ignore(act: Callable[[], object]) -> None:
    try:
        act()
    except OSError:
        pass


class AskedTree:
    """A host directory, as the kernel asks for it."""

    def __init__(self, directory: HostDirectory, work: HostWork) -> None:
        self._directory = directory
        self._work = work
        self.root = directory.root
        self.since = work.since
        self.give_way = work.give_way

    def seen_at(self) -> float:
        """See `OutsideTree`."""
        return self._work.seen_at

    # Reading.

    def list(self, place: Place, known: Facts | None, names: tuple[bytes, ...]) -> Listing:
        """See `OutsideTree`."""
        key = ("list", place, None if known is None else names)
        return self._work.look(key, lambda: self._directory.list(place, known, names))

    def facts(self, place: Place) -> Facts:
        """See `OutsideTree`."""
        return self._work.look(("facts", place, None), lambda: self._directory.facts(place))

    def read(self, place: Place, offset: int, size: int) -> bytes:
        """See `OutsideTree`."""
        key = ("read", place, (offset, size))
        return self._work.look(key, lambda: self._directory.read(place, offset, size))

    def whole(self, place: Place, most: int) -> FileContent:
        """See `OutsideTree`."""
        key = ("whole", place, None)
        return self._work.look(key, lambda: self._directory.whole(place, most))

    def retain(self, place: Place) -> None:
        """See `OutsideTree`."""
        self._directory.retain(place)

    def release(self, place: Place) -> None:
        """See `OutsideTree`."""
        fd = self._directory.release(place)
        if fd is not None:
            self._work.later(lambda: os.close(fd))

    # Changing.

    @property
    def _writable(self) -> WritableDirectory:
        return cast("WritableDirectory", self._directory)

    def _add(self, parent: Place, name: bytes, what: str, act: Callable[[], Facts]) -> Facts:
        key = (what, parent, name)
        try:
            return self._work.do(key, act, (parent,))
        except KernelError as error:
            if error.errno is Errno.EEXIST:
                self._work.look_for_existing(key, parent)
            raise

    def create(self, parent: Place, name: bytes, mode: int) -> Facts:
        """See `OutsideTree`."""
        return self._add(parent, name, "new", lambda: self._writable.create(parent, name, mode))

    def mkdir(self, parent: Place, name: bytes, mode: int) -> Facts:
        """See `OutsideTree`."""
        return self._add(parent, name, "dir", lambda: self._writable.mkdir(parent, name, mode))

    def symlink(self, parent: Place, name: bytes, target: bytes) -> Facts:
        """See `OutsideTree`."""
        return self._add(
            parent, name, "symlink", lambda: self._writable.symlink(parent, name, target)
        )

    def link(self, place: Place, parent: Place, name: bytes) -> Facts:
        """See `OutsideTree`."""
        return self._add(parent, name, "link", lambda: self._writable.link(place, parent, name))

    def unlink(self, parent: Place, name: bytes, victim: Place) -> Facts:
        """See `OutsideTree`."""
        return self._work.do(
            ("unlink", parent, name),
            lambda: self._writable.unlink(parent, name, victim),
            (parent, victim),
        )

    def rmdir(self, parent: Place, name: bytes, victim: Place) -> Facts:
        """See `OutsideTree`."""
        return self._work.do(
            ("rmdir", parent, name),
            lambda: self._writable.rmdir(parent, name, victim),
            (parent, victim),
        )

    def rename(self, move: Move) -> Facts:
        """See `OutsideTree`."""
        replaced = () if move.replaced is None else (move.replaced,)
        return self._work.do(
            ("rename", move),
            lambda: self._writable.rename(move),
            (move.place, move.parent, move.new_parent, *replaced),
        )

    def set_attributes(
        self, place: Place, mode: int | None, atime: int | None, mtime: int | None
    ) -> Facts:
        """See `OutsideTree`."""
        return self._work.do(
            ("attributes", place, mode, atime, mtime),
            lambda: self._writable.set_attributes(place, mode, atime, mtime),
            (place,),
        )

    def write(self, place: Place, offset: int, data: Data) -> tuple[int, Facts]:
        """See `OutsideTree`."""
        copy = bytes(data)
        return self._work.do(
            ("write", place, offset, len(copy)),
            lambda: self._writable.write(place, offset, copy),
            (place,),
        )

    def truncate(self, place: Place, size: int) -> Facts:
        """See `OutsideTree`."""
        return self._work.do(
            ("truncate", place, size), lambda: self._writable.truncate(place, size), (place,)
        )
