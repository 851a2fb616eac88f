"""fork by Asyncify, for any engine.

Owns the state machine between one guest and its Asyncify functions, and what a fork copies. Rules:
the guest may be hostile. The functions that it exports under Asyncify's names can do anything, so
every step checks the current phase, and an unexpected phase is a `GuestTrap`. Addresses in the
Asyncify buffer are checked against the memory. A guest that lies about them reaches only its own
memory and its own child. Nothing here depends on an engine: an engine provides `ForkingInstance`.

A fork: the guest calls the import; the host calls `asyncify_start_unwind` and returns; the guest's
functions save their frames and return, until the entry (`_start`) returns; the host calls
`asyncify_stop_unwind` and creates the child. Then parent and child each do the same: the host calls
`asyncify_start_rewind` and the entry; the guest's functions restore their frames, down to the
import; the import calls `asyncify_stop_rewind` and returns the child's pid, or 0 in the child.

A fork copies the memory, its size and `__stack_pointer`. A guest that forks must keep no other
state in globals or tables; compiled C does not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final, Protocol, Self

from wasmsand.engine.dormant import DormantFork
from wasmsand.engine.protocol import GuestTrap, HostCalls, Instance, LinearMemory, TrapKind

ASYNCIFY_FUNCTIONS = {
    "asyncify_start_unwind": 1,
    "asyncify_stop_unwind": 0,
    "asyncify_start_rewind": 1,
    "asyncify_stop_rewind": 0,
}
"""Exports required of a guest that imports `linux.fork`: their number of i32 parameters."""

_EAGAIN, _ENOMEM = 11, 12
_HEADER = struct.Struct("<II")
_RED_ZONE: Final = 128
"""Bytes below the C stack pointer that compiled code may use."""


class ForkingInstance(Instance, Protocol):
    """What a fork needs of an instance whose program imports `linux.fork`."""

    @property
    def calls(self) -> HostCalls:
        """The receiver of this guest's calls."""

    @property
    def asyncify(self) -> Asyncify | None:
        """The fork state of this instance; None if its program cannot fork."""

    @property
    def nested(self) -> int:
        """How many `Instance.call`s are in progress."""

    @property
    def entry(self) -> str:
        """The exported function that runs the program."""

    def invoke(self, name: str, argument: int | None = None) -> None:
        """Call an exported function with no parameter or one i32. Raises as `Instance.run` does."""

    def new_child(self, memory_limit: int) -> Self:
        """An instance for a copy of this one, which `copy_memory` fills. Raises `MemoryError`."""

    def grow_memory(self, size: int) -> bool:
        """Grow the memory to `size` bytes; False if that is not possible."""

    def stack_pointer(self) -> int | None:
        """The value of `__stack_pointer`; None if the program does not export it."""

    def set_stack_pointer(self, address: int) -> None:
        """Set `__stack_pointer`, which the program exports."""

    def copy_memory(self, child: Self, ranges: Iterable[tuple[int, int]]) -> None:
        """Copy the bytes of these ranges (start and end) to `child`, which has at least as much
        memory. The rest of its memory stays new, or becomes a copy as well."""


class Phase(Enum):
    """The phase of a guest in a fork."""

    NONE = auto()
    """No fork is in progress."""
    UNWINDING = auto()
    """`_start` is returning."""
    COPIED = auto()
    """A child that has not run yet."""
    REWINDING = auto()
    """`_start` is returning to the import."""
    BETWEEN = auto()
    """An Asyncify function or the host's copy is running: the guest must not call anything."""


class Asyncify:
    """The fork state of one instance."""

    __slots__ = ("_buffer", "_instance", "_phase", "_result", "_size")

    def __init__(self, instance: ForkingInstance) -> None:
        self._instance = instance
        self._phase = Phase.NONE
        self._buffer = 0
        self._result = 0
        """What the import returns when the guest is back there."""
        self._size = 0
        """The size of the memory when the fork was allowed."""

    @property
    def under_way(self) -> bool:
        """Whether a fork is in progress, so that the guest cannot be called."""
        return self._phase is not Phase.NONE

    def run(self) -> None:
        """Run the entry, or continue after a fork, until the guest ends; see `Instance.run`."""
        entry = self._instance.entry
        if self._phase is Phase.COPIED:
            self._start_rewind(self._result)
        self._instance.invoke(entry)
        while self._must_start_again():
            self._instance.invoke(entry)

    def copy_to(self, child: ForkingInstance, result: int | None = None) -> bool:
        """Make `child`, a new instance, a copy of this one, which is a copy that has not run
        yet. In the new one, fork returns `result`; None: what it returns in this one. False if the
        child cannot have that much memory."""
        if self._phase is not Phase.COPIED:
            raise GuestTrap(TrapKind.OTHER, f"copied while {self._phase.name.lower()}")
        if not _copy(self._instance, child, *self._read_header(self._buffer)):
            return False
        assert child.asyncify is not None  # the program is the same
        child.asyncify._phase = Phase.COPIED
        child.asyncify._buffer = self._buffer
        child.asyncify._result = self._result if result is None else result
        return True

    @property
    def is_copy(self) -> bool:
        """Whether the instance is a copy that has not run yet."""
        return self._phase is Phase.COPIED

    def dormant(self) -> DormantFork:
        """What a copy that has not run yet needs besides its memory."""
        assert self.is_copy
        return DormantFork(self._buffer, self._result)

    def copied_ranges(self) -> Iterator[tuple[int, int]]:
        """The parts of the memory that a copy of this copy gets."""
        instance = self._instance
        size, stack_pointer = instance.memory_size(), instance.stack_pointer()
        yield from copied_ranges(size, stack_pointer, *self._read_header(self._buffer))

    def become_copy(self, fork: DormantFork) -> None:
        """Make a new instance, whose memory is complete, a copy that has not run yet. Raises
        `GuestTrap` if its buffer lies outside the memory."""
        self._read_header(fork.buffer)
        self._phase, self._buffer, self._result = Phase.COPIED, fork.buffer, fork.result

    def import_called(self, buffer: int) -> int:
        """The guest called `linux.fork`."""
        if self._phase is Phase.REWINDING:
            self._phase = Phase.BETWEEN
            self._instance.invoke("asyncify_stop_rewind")
            self._phase = Phase.NONE
            return self._result
        if self._phase is not Phase.NONE:
            raise GuestTrap(TrapKind.OTHER, f"fork called while {self._phase.name.lower()}")
        if self._instance.nested:
            return -_EAGAIN
        refusal = self._instance.calls.fork_allowed()
        if refusal:
            return refusal
        self._size = self._instance.memory_size()
        self._read_header(buffer)
        self._phase = Phase.BETWEEN
        self._instance.invoke("asyncify_start_unwind", buffer)
        self._phase = Phase.UNWINDING
        self._buffer = buffer
        return 0

    def _must_start_again(self) -> bool:
        """`_start` returned: True if for a fork, False if the guest has ended."""
        if self._phase is Phase.NONE:
            return False
        if self._phase is not Phase.UNWINDING:
            raise GuestTrap(TrapKind.OTHER, f"guest ended while {self._phase.name.lower()}")
        self._phase = Phase.BETWEEN
        self._instance.invoke("asyncify_stop_unwind")
        self._start_rewind(self._fork())
        return True

    def _start_rewind(self, result: int) -> None:
        self._phase = Phase.BETWEEN
        self._result = result
        self._instance.invoke("asyncify_start_rewind", self._buffer)
        self._phase = Phase.REWINDING

    def _fork(self) -> int:
        """Create the child. Its pid, or a negative errno."""
        parent = self._instance
        used_end, buffer_end = self._read_header(self._buffer)
        try:
            child = parent.new_child(self._size)
        except MemoryError:
            parent.calls.fork_failed()
            return -_ENOMEM
        if not _copy(parent, child, used_end, buffer_end):
            child.close()
            parent.calls.fork_failed()
            return -_ENOMEM
        assert child.asyncify is not None  # the program is the same
        child.asyncify._phase = Phase.COPIED
        child.asyncify._buffer = self._buffer
        return parent.calls.fork_child(child)

    def _read_header(self, buffer: int) -> tuple[int, int]:
        return read_header(self._instance, buffer)


def read_header(memory: LinearMemory, buffer: int) -> tuple[int, int]:
    """The end of the saved frames, and the end of the buffer. Raises `GuestTrap`."""
    size = memory.memory_size()
    if buffer >= 0 and buffer + _HEADER.size <= size:
        current, end = _HEADER.unpack(memory.read(buffer, _HEADER.size))
        if current <= end <= size:
            return current, end
    raise GuestTrap(TrapKind.MEMORY, "the Asyncify buffer lies outside the memory")


def _copy(parent: ForkingInstance, child: ForkingInstance, gap_start: int, gap_end: int) -> bool:
    """Copy the memory and stack pointer of `parent` to a new instance, without the unused part of
    the C stack and without the gap. False if the child cannot have that much memory."""
    size, stack_pointer = parent.memory_size(), parent.stack_pointer()
    if not child.grow_memory(size):
        return False
    parent.copy_memory(child, copied_ranges(size, stack_pointer, gap_start, gap_end))
    if stack_pointer is not None:
        child.set_stack_pointer(stack_pointer)
    return True


def copied_ranges(
    size: int, stack_pointer: int | None, gap_start: int, gap_end: int
) -> Iterator[tuple[int, int]]:
    """What a fork copies of a memory of `size` bytes: all but the unused part of the C stack and
    the unused part of the Asyncify buffer. Raises `GuestTrap`."""
    low = 0
    if stack_pointer is not None:
        if stack_pointer > size:
            raise GuestTrap(TrapKind.MEMORY, "the stack pointer lies outside the memory")
        low = max(0, stack_pointer - _RED_ZONE)
    for start, end in ((low, min(gap_start, size)), (max(low, gap_end), size)):
        if start < end:
            yield start, end
