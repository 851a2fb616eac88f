"""What becomes of locks and of the native library when the host process forks.

A forked process has one thread, and all locks as the others left them. Owns how the module-level
locks of the engine and of the layers above it are free in a child, and why the native library is
not in the middle of something there. Rules: every lock of a module is registered here; objects
that hold locks (engines, machines, pools) are not repaired: they belong to the parent, and a
child makes its own. What the library does under global locks of its own (making an engine,
opening compiled code) happens within `native`, and a fork waits for the end of that.
"""

from __future__ import annotations

import os
from _thread import LockType, allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_PATIENCE_SECONDS: Final = 2.0
"""How long a fork waits at most. A thread that forks in the middle of `native` itself, as in a
signal handler, would wait for itself."""

_native: LockType = allocate_lock()
_held_by_fork = False


def in_child(act: Callable[[], None]) -> None:
    """Have `act` called in every child that this process forks. It must not wait."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=act)


def renewed_in_child(module: dict[str, Any], name: str) -> None:
    """Give the module with these globals a new lock of this name in every child."""

    def renew() -> None:
        module[name] = allocate_lock()

    in_child(renew)


@contextmanager
def native() -> Iterator[None]:
    """Within this no other thread forks, for calls that take locks of the native library."""
    lock = _native
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _before_fork() -> None:
    global _held_by_fork
    _held_by_fork = _native.acquire(timeout=_PATIENCE_SECONDS)


def _in_parent() -> None:
    global _held_by_fork
    if _held_by_fork:
        _held_by_fork = False
        _native.release()


def _in_child() -> None:
    global _native, _held_by_fork
    _native, _held_by_fork = allocate_lock(), False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
