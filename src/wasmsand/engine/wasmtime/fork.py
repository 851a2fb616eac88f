"""fork, by Asyncify.

Owns the state machine between one guest and its Asyncify functions, and the copy of a
guest's memory. Rules: the guest may be hostile: the functions it exports under Asyncify's
names can do anything, so every step checks in which phase it happens, and an unexpected
one is a `GuestTrap`; the addresses in the Asyncify buffer are checked against the memory.
What a guest can reach by lying about them is its own memory and its own child.

A fork: the guest calls the import; the host calls `asyncify_start_unwind` and returns; the
guest's functions save their frames and return, until `_start` returns; `stop_unwind`; the
child is made; then each of the two, by itself, does `start_rewind`, calls `_start` again,
which restores its frames down to the import, and the import does `stop_rewind` and returns
the child's pid or 0.

Only the memory, its size and `__stack_pointer` are copied: a guest that forks must keep no
other state in globals or tables, as compiled C does not.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import TYPE_CHECKING

from wasmsand.engine.protocol import GuestTrap, TrapKind
from wasmsand.engine.wasmtime.bindings import ffi
from wasmsand.engine.wasmtime.touched_pages import written_ranges

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.instance import WasmtimeInstance

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

    __slots__ = ("_buffer", "_instance", "_result", "_size", "phase")

    def __init__(self, instance: WasmtimeInstance) -> None:
        self.phase = Phase.NONE
        self._instance = instance
        self._buffer = 0
        self._result = 0
        self._size = 0
        """Of the memory, when the fork was allowed."""

    def import_called(self, buffer: int) -> int:
        """The guest called `linux.fork`."""
        if self.phase is Phase.REWINDING:
            self.phase = Phase.BETWEEN
            self._instance.invoke("asyncify_stop_rewind")
            self.phase = Phase.NONE
            return self._result
        if self.phase is not Phase.NONE:
            raise GuestTrap(TrapKind.OTHER, f"fork called while {self.phase.name.lower()}")
        if self._instance.nested:
            return -_EAGAIN
        refusal = self._instance.calls.fork_allowed()
        if refusal:
            return refusal
        self._size = self._instance.memory_size()
        self._read_header(buffer)
        self.phase = Phase.BETWEEN
        self._instance.invoke("asyncify_start_unwind", buffer)
        self.phase = Phase.UNWINDING
        self._buffer = buffer
        return 0

    def start_returned(self) -> bool:
        """`_start` returned; true if it must be called again, false if the guest has ended."""
        if self.phase is Phase.NONE:
            return False
        if self.phase is not Phase.UNWINDING:
            raise GuestTrap(TrapKind.OTHER, f"guest ended while {self.phase.name.lower()}")
        self.phase = Phase.BETWEEN
        self._instance.invoke("asyncify_stop_unwind")
        self._start_rewind(self._fork())
        return True

    def resume_copy(self) -> None:
        """Bring a new child to the point where `_start` continues it."""
        if self.phase is Phase.COPIED:
            self._start_rewind(0)

    def _start_rewind(self, result: int) -> None:
        self.phase = Phase.BETWEEN
        self._result = result
        self._instance.invoke("asyncify_start_rewind", self._buffer)
        self.phase = Phase.REWINDING

    def _fork(self) -> int:
        """Make the child; its pid, or minus errno."""
        parent = self._instance
        used_end, buffer_end = self._read_header(self._buffer)
        try:
            child = parent.sibling(self._size)
        except MemoryError:
            parent.calls.fork_failed()
            return -_ENOMEM
        assert child.asyncify is not None
        if not copy_memory(parent, child, used_end, buffer_end):
            child.close()
            parent.calls.fork_failed()
            return -_ENOMEM
        child.asyncify.phase = Phase.COPIED
        child.asyncify._buffer = self._buffer
        return parent.calls.fork_child(child)

    def _read_header(self, buffer: int) -> tuple[int, int]:
        """Where the saved frames end, and where the buffer does."""
        size = self._instance.memory_size()
        if buffer + _HEADER.size <= size:
            current, end = _HEADER.unpack_from(self._instance.memory(), buffer)
            if current <= end <= size:
                return current, end
        raise GuestTrap(TrapKind.MEMORY, "the Asyncify buffer lies outside the memory")


def copy_memory(
    parent: WasmtimeInstance, child: WasmtimeInstance, gap_start: int, gap_end: int
) -> bool:
    """Make a fresh instance's memory and stack pointer those of `parent`.

    Left out are the unused part of the C stack, the gap, and pages that neither has ever
    written. False if the child cannot have that much memory.
    """
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
    source, target = parent.memory_base, child.memory_base
    address = int(ffi.cast("uintptr_t", source))
    for part in ((low, min(gap_start, size)), (max(low, gap_end), size)):
        for start, end in written_ranges(address, *part):
            ffi.memmove(target + start, source + start, end - start)
    return True
