"""The thread-local variables of a program whose threads take turns.

Owns `ThreadLocals`, one per program that has threads. The threads share one memory, in which
thread-local variables lie at fixed places. Rules: only one thread runs at a time. When another
thread takes its turn, the content of these places is exchanged, so that each thread finds its own
values. A new thread finds the values of the thread before it; the program initializes them.
"""

from __future__ import annotations

from typing import Final, Protocol

from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.protocol import Instance
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import THREAD_LOCALS_BYTES_MAX

_PLACES: Final = "__thread_locals"
"""The exported address of four words: the start and end addresses of two areas."""


class Runner(Protocol):
    """A thread of the program."""

    memory: GuestMemory
    kept_locals: list[bytes] | None
    """Its variables while another thread runs; None if it has never run."""


def _places(instance: Instance, memory: GuestMemory) -> list[tuple[int, int]]:
    """The areas of thread-local variables: (address, size)."""
    address = instance.exported_address(_PLACES)
    if address is None:
        return []
    words = [memory.read_u32(address + 4 * index) for index in range(4)]
    places = [(start, end - start) for start, end in zip(words[::2], words[1::2], strict=True)]
    if any(size < 0 for _, size in places) or sum(n for _, n in places) > THREAD_LOCALS_BYTES_MAX:
        raise KernelError(Errno.EFAULT, f"{_PLACES}: {words}")
    for start, size in places:
        memory.require(start, size)
    return [(start, size) for start, size in places if size]


class ThreadLocals:
    """The areas of thread-local variables, and the thread whose values they hold."""

    __slots__ = ("_places", "_present", "size")

    def __init__(self, instance: Instance, first: Runner) -> None:
        """`first` is the running thread. Raises EFAULT if the program's list of areas is
        invalid."""
        self._places = _places(instance, first.memory)
        self._present = first
        self.size = sum(size for _, size in self._places)
        """Bytes stored for each thread that does not run."""

    def switch_to(self, runner: Runner) -> None:
        """`runner` takes its turn: save the current values, and restore its own."""
        last, memory = self._present, runner.memory
        if last is runner:
            return
        last.kept_locals = [memory.read(start, size) for start, size in self._places]
        self._present = runner
        if runner.kept_locals is not None:
            for (start, _), content in zip(self._places, runner.kept_locals, strict=True):
                memory.write(start, content)
            runner.kept_locals = None
