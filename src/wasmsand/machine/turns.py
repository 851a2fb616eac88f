"""Whose turn it is: which thread of a process runs.

Owns `Turn`, one per process that has threads. Rules: only the thread that has the turn runs
the program; it passes it on when it waits, when it yields, at an engine tick if others want
it, and at its end; who asked first is next. Everything but the wait itself happens under the
sandbox's lock. When the turn changes hands, the program's thread-local variables, which lie
in known places of its memory, are exchanged: a thread finds there what it left.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.protocol import Instance
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine.lock import SandboxLock

_PLACES: Final = "__thread_locals"
"""The exported address of the program's list of places: first and last address of two."""
_PLACES_BYTES_MAX: Final = 1 << 20
_PATIENCE_SECONDS: Final = 0.01


class Runner(Protocol):
    """A thread, as the turn sees it."""

    memory: GuestMemory
    thread_locals: list[bytes] | None
    """Its thread-local variables while another thread runs; None if it never ran."""


def _places(instance: Instance, memory: GuestMemory) -> list[tuple[int, int]]:
    """Where thread-local variables are: (address, size)."""
    address = instance.exported_address(_PLACES)
    if address is None:
        return []
    words = [memory.read_u32(address + 4 * index) for index in range(4)]
    places = [(start, end - start) for start, end in zip(words[::2], words[1::2], strict=True)]
    if any(size < 0 for _, size in places) or sum(n for _, n in places) > _PLACES_BYTES_MAX:
        raise KernelError(Errno.EFAULT, f"{_PLACES}: {words}")
    for start, size in places:
        memory.require(start, size)
    return [(start, size) for start, size in places if size]


class Turn:
    """The right to run the program of one process."""

    __slots__ = ("_interrupt", "_last", "_lock", "_places", "_taken", "_waiting")

    def __init__(
        self, lock: SandboxLock, interrupt: Callable[[], None], first: Runner, instance: Instance
    ) -> None:
        """`first` has it. `interrupt` makes whoever computes tick at once."""
        self._lock = lock
        self._interrupt = interrupt
        self._places = _places(instance, first.memory)
        self._waiting: deque[LockType] = deque()
        self._taken = True
        self._last = first

    @property
    def wanted(self) -> bool:
        """Whether others wait for it."""
        return bool(self._waiting)

    @property
    def kept_bytes(self) -> int:
        """What is kept of the thread-local variables of each thread that does not run."""
        return sum(size for _, size in self._places)

    def ask(self) -> LockType:
        """A place in the queue, for a thread that will `take` the turn; it is taken by another."""
        gate = allocate_lock()
        gate.acquire()
        self._waiting.append(gate)
        return gate

    def take(self, runner: Runner, place: LockType | None = None) -> None:
        """Wait for the turn; the lock is free meanwhile."""
        if place is None and self._taken:
            place = self.ask()
        if place is not None:
            self._lock.release()
            if not place.acquire(timeout=_PATIENCE_SECONDS):
                self._interrupt()  # ticks are far apart after everybody has waited for a while
                place.acquire()
            self._lock.acquire()
        self._taken = True
        if self._last is not runner:
            self._exchange(runner)

    def give(self) -> None:
        """Let the next one run."""
        if self._waiting:
            self._waiting.popleft().release()
        else:
            self._taken = False

    def _exchange(self, runner: Runner) -> None:
        last, memory = self._last, runner.memory
        last.thread_locals = [memory.read(start, size) for start, size in self._places]
        self._last = runner
        if runner.thread_locals is not None:
            for (start, _), content in zip(self._places, runner.thread_locals, strict=True):
                memory.write(start, content)
            runner.thread_locals = None
