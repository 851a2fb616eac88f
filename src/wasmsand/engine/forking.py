"""Locks and the native library when the host process forks.

A forked process has one thread, and locks in the state in which the other threads left them. Owns
how module-level locks of the engine and of the layers above it are renewed in a child, and how a
fork avoids interrupting the native library. Rules: every module-level lock is registered here.
Objects with locks (engines, machines, pools) are not repaired: they belong to the parent, and a
child creates its own. What the library does under its own global locks (creating an engine, opening
compiled code) happens within `native`, and a fork waits for it to finish.
"""

from __future__ import annotations

import os
from _thread import LockType, allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_PATIENCE_SECONDS: Final = 2.0
"""The longest time that a fork waits. A thread that forks inside `native`, as in a signal handler,
would otherwise wait for itself."""

_native: LockType = allocate_lock()
_held_by_fork = False


def in_child(act: Callable[[], None]) -> None:
    """Call `act` in every child that this process forks. It must not wait."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=act)


def renewed_in_child(module: dict[str, Any], name: str) -> None:
    """In every child, replace the lock with this name in the module with these globals."""

    def renew() -> None:
        module[name] = allocate_lock()

    in_child(renew)


@contextmanager
def native() -> Iterator[None]:
    """Prevent forks by other threads within this block, for calls that take the native library's
    locks."""
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
