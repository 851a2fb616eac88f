"""Machines on which a test acts for the guest between two steps of a host operation.

`Host` makes files directly in the kernel, which is faster than a guest. `Turns` is its lock: it
measures how long the host holds it, and runs the guest's part whenever the host releases it.
"""

from __future__ import annotations

import time
import tracemalloc
from _thread import allocate_lock
from collections.abc import Callable
from typing import cast

from wasmsand.kernel.flags import O_CREAT, O_WRONLY
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Node, standard_tree
from wasmsand.machine import Machine, MachineOptions
from wasmsand.machine.lock import SandboxLock

HUGE = 1 << 40


LONGEST_HOLD = 2.0
"""Seconds. Holds last milliseconds, but the machine may be busy."""


class Turns:
    """A sandbox's lock that counts and times its holds, and runs `between` when it is free, as a
    guest would run."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self.between: Callable[[], None] | None = None
        self.count = 0
        self.longest = 0.0
        self._since = 0.0
        self.held_by_host = False

    def acquire(self) -> bool:
        self._lock.acquire()
        self._since = time.thread_time()
        return True

    def release(self) -> None:
        self.longest = max(self.longest, time.thread_time() - self._since)
        self.count += 1
        self._lock.release()
        between, self.between = self.between, None
        if between is not None:
            between()
            self.between = between

    def release_mine(self) -> None:
        self.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class Host:
    """A machine without programs, with shortcuts to make files as a guest would."""

    def __init__(self, limits: Limits | None = None) -> None:
        builder = ImageBuilder()
        standard_tree(builder)
        self.machine = Machine(MachineOptions(limits=limits or Limits()), image=builder.build())
        self.turns = Turns()
        self.machine.lock = cast("SandboxLock", self.turns)
        self.files = self.machine.files
        self.namespace = self.machine.kernel.namespace

    def node(self, path: str) -> Node:
        return self.namespace.resolve(ROOT, self.namespace.root, path.encode(), follow=False)

    def truncate(self, path: str, size: int) -> None:
        self.namespace.resize(ROOT, self.node(path), size)

    def link(self, path: str, new: str) -> None:
        self.namespace.link(ROOT, self.node(path), self.namespace.root, new.encode())

    def rename(self, path: str, new: str) -> None:
        root = self.namespace.root
        self.namespace.rename(ROOT, root, path.encode(), root, new.encode())

    def fill(self, path: str, count: int, prefix: str = "f") -> None:
        """Make empty files in a directory, which is made if it is missing."""
        if not self.files.exists(path):
            self.namespace.mkdir(ROOT, self.namespace.root, path.encode(), 0o755)
        directory = self.node(path)
        for number in range(count):
            name = f"{prefix}{number}".encode()
            self.namespace.open_node(ROOT, directory, name, O_CREAT | O_WRONLY, 0o644)


class PythonPeak:
    """The peak of memory that Python allocated in a block."""

    def __enter__(self) -> PythonPeak:
        tracemalloc.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
