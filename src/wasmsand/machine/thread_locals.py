"""The thread-local variables of a program whose threads take turns.

Owns `ThreadLocals`, one per program that has threads. They share one memory, in which the
variables that each thread has for itself lie in known places. Rules: only one thread runs at a
time; when another one goes on, what is in these places is exchanged, so that a thread finds there
what it left. A thread that never ran finds what the last one left; the program sets it up.
"""

from __future__ import annotations

from typing import Final, Protocol

from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.protocol import Instance
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import THREAD_LOCALS_BYTES_MAX

_PLACES: Final = "__thread_locals"
"""The exported address of the program's list of places: first and last address of two."""


class Runner(Protocol):
    """A thread of the program."""

    memory: GuestMemory
    kept_locals: list[bytes] | None
    """Its variables while another thread runs; None if it never ran."""


def _places(instance: Instance, memory: GuestMemory) -> list[tuple[int, int]]:
    """Where thread-local variables are: (address, size)."""
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
    """The places of thread-local variables, and whose variables are in them."""

    __slots__ = ("_places", "_present", "size")

    def __init__(self, instance: Instance, first: Runner) -> None:
        """`first` runs. Raises EFAULT if the program's list of places is wrong."""
        self._places = _places(instance, first.memory)
        self._present = first
        self.size = sum(size for _, size in self._places)
        """Bytes that are kept for each thread that does not run."""

    def switch_to(self, runner: Runner) -> None:
        """`runner` goes on: keep what is there, and put back what it left."""
        last, memory = self._present, runner.memory
        if last is runner:
            return
        last.kept_locals = [memory.read(start, size) for start, size in self._places]
        self._present = runner
        if runner.kept_locals is not None:
            for (start, _), content in zip(self._places, runner.kept_locals, strict=True):
                memory.write(start, content)
            runner.kept_locals = None
