"""fork, by Asyncify, for any engine.

Owns the state machine between one guest and its Asyncify functions, and what a fork copies.
Rules: the guest may be hostile: the functions it exports under Asyncify's names can do anything,
so every step checks the phase in which it happens, and an unexpected one is a `GuestTrap`; the
addresses in the Asyncify buffer are checked against the memory. A guest that lies about them
reaches only its own memory and its own child. Nothing here knows an engine: an engine gives
`ForkingInstance`.

A fork: the guest calls the import; the host calls `asyncify_start_unwind` and returns; the
guest's functions save their frames and return, until `_start` returns; the host calls
`asyncify_stop_unwind` and makes the child. Then parent and child do the same, each by itself:
the host calls `asyncify_start_rewind` and `_start`; the guest's functions restore their frames,
down to the import; the import calls `asyncify_stop_rewind` and returns the child's pid, or 0 in
the child.

A fork copies the memory, its size and `__stack_pointer`. A guest that forks must keep no other
state in globals or tables; compiled C does not.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import Protocol, Self

from wasmsand.engine.protocol import GuestTrap, HostCalls, Instance, TrapKind

ASYNCIFY_FUNCTIONS = {
    "asyncify_start_unwind": 1,
    "asyncify_stop_unwind": 0,
    "asyncify_start_rewind": 1,
    "asyncify_stop_rewind": 0,
}
"""Exports that a guest importing `linux.fork` must have: how many i32 they take."""

_EAGAIN, _ENOMEM = 11, 12
_HEADER = struct.Struct("<II")
_RED_ZONE = 128
"""Bytes below the C stack pointer that compiled code may still use."""


class ForkingInstance(Instance, Protocol):
    """What a fork needs of an instance whose program imports `linux.fork`."""

    @property
    def calls(self) -> HostCalls:
        """Whose calls these are."""

    @property
    def asyncify(self) -> Asyncify | None:
        """The forks of this instance; None if its program cannot fork."""

    @property
    def nested(self) -> int:
        """How many `Instance.call` are under way."""

    def invoke(self, name: str, argument: int | None = None) -> None:
        """Call an exported function that takes nothing or one i32; raises as `Instance.run`."""

    def sibling(self, memory_limit: int) -> Self:
        """A fresh instance that began as this one did; raises `MemoryError`."""

    def grow_memory(self, size: int) -> bool:
        """Make the memory `size` bytes; false if that is not possible."""

    def stack_pointer(self) -> int | None:
        """The value of `__stack_pointer`, if the program exports it."""

    def set_stack_pointer(self, address: int) -> None:
        """Set `__stack_pointer`, which the program exports."""

    def copy_memory(self, child: Self, start: int, end: int) -> None:
        """Make the bytes from `start` to `end` of `child`, which is a fresh sibling of at least
        this size, those of this instance."""


class Phase(Enum):
    """Where a guest stands in a fork."""

    NONE = auto()
    """No fork is under way."""
    UNWINDING = auto()
    """`_start` is returning."""
    COPIED = auto()
    """A child that has not run yet."""
    REWINDING = auto()
    """`_start` is going back to the import."""
    BETWEEN = auto()
    """An Asyncify function runs, or the host copies: the guest has nothing to call."""


class Asyncify:
    """The forks of one instance."""

    __slots__ = ("_buffer", "_instance", "_phase", "_result", "_size")

    def __init__(self, instance: ForkingInstance) -> None:
        self._instance = instance
        self._phase = Phase.NONE
        self._buffer = 0
        self._result = 0
        self._size = 0
        """Of the memory, when the fork was allowed."""

    @property
    def under_way(self) -> bool:
        """Whether the guest is in the middle of a fork, and so cannot be called."""
        return self._phase is not Phase.NONE

    def run(self) -> None:
        """Run `_start`, or go on after a fork, until the guest has ended; see `Instance.run`."""
        if self._phase is Phase.COPIED:
            self._start_rewind(0)
        self._instance.invoke("_start")
        while self._must_start_again():
            self._instance.invoke("_start")

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
        """`_start` returned: for a fork, or because the guest has ended."""
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
        """Make the child; its pid, or minus errno."""
        parent = self._instance
        used_end, buffer_end = self._read_header(self._buffer)
        try:
            child = parent.sibling(self._size)
        except MemoryError:
            parent.calls.fork_failed()
            return -_ENOMEM
        if not _copy(parent, child, used_end, buffer_end):
            child.close()
            parent.calls.fork_failed()
            return -_ENOMEM
        assert child.asyncify is not None  # it has the same program
        child.asyncify._phase = Phase.COPIED
        child.asyncify._buffer = self._buffer
        return parent.calls.fork_child(child)

    def _read_header(self, buffer: int) -> tuple[int, int]:
        """Where the saved frames end, and where the buffer does."""
        size = self._instance.memory_size()
        if buffer + _HEADER.size <= size:
            current, end = _HEADER.unpack(self._instance.read(buffer, _HEADER.size))
            if current <= end <= size:
                return current, end
        raise GuestTrap(TrapKind.MEMORY, "the Asyncify buffer lies outside the memory")


def _copy(parent: ForkingInstance, child: ForkingInstance, gap_start: int, gap_end: int) -> bool:
    """Make a fresh instance's memory and stack pointer those of `parent`, but for the unused part
    of the C stack and the gap. False if the child cannot have that much memory."""
    size = parent.memory_size()
    if not child.grow_memory(size):
        return False
    low = 0
    stack_pointer = parent.stack_pointer()
    if stack_pointer is not None:
        if stack_pointer > size:
            raise GuestTrap(TrapKind.MEMORY, "the stack pointer lies outside the memory")
        low = max(0, stack_pointer - _RED_ZONE)
        child.set_stack_pointer(stack_pointer)
    for start, end in ((low, min(gap_start, size)), (max(low, gap_end), size)):
        if start < end:
            parent.copy_memory(child, start, end)
    return True
