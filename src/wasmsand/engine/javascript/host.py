"""What the JavaScript side offers to this engine (web/src/kernel/engine-host.ts).

Owns `JavaScriptHost`. Rules: only numbers, strings and lists of them cross the border, because
every other object costs a proxy. Programs, memories and guests are known by numbers. Bytes cross in
one buffer, `transfer`, which belongs to Python and which JavaScript finds in Pyodide's memory.
"""

from __future__ import annotations

from typing import Protocol

TRANSFER_BYTES = 1 << 20
"""The size of the buffer through which bytes cross."""


class ModuleForm(Protocol):
    """What the host knows of a compiled module."""

    id: int
    imports: str
    """One line per import: module, name, kind, separated by tabs."""
    procedures: str
    """Exported functions `() -> ()`, one per line."""
    addresses: str
    """Exported immutable i32 globals: name, tab, value; one per line."""
    variables: str
    """Exported mutable i32 globals with their initial values, in the same form."""
    starts_threads: bool
    """Whether it exports the entry of further threads."""
    first_pages: int
    """The size of its memory at the start."""
    most_pages: int
    """The largest size that it declares; 65536 if it declares none."""
    problem: str
    """Why it cannot run, or an empty text."""


class JavaScriptHost(Protocol):
    """The functions of the JavaScript side."""

    def compile(self, size: int) -> ModuleForm:
        """Compile the module whose bytes `feed` has collected, and forget these bytes."""

    def feed(self, count: int) -> None:
        """Add the first `count` bytes of the transfer buffer to the bytes for `compile`."""

    def unload(self, module: int) -> None:
        """Forget a module; memories and guests that use it keep it alive."""

    def new_memory(self, module: int, first_pages: int, most_pages: int) -> int:
        """A new memory with the module's data. -1 if the host has no room."""

    def memory_size(self, memory: int) -> int:
        """Bytes of a memory."""

    def read(self, memory: int, address: int, count: int) -> None:
        """Copy from a memory to the beginning of the transfer buffer."""

    def write(self, memory: int, address: int, count: int) -> None:
        """Copy the beginning of the transfer buffer to a memory."""

    def fill(self, memory: int, image: int, first: int) -> None:
        """Copy a stored memory to a new one, at the address `first`; the rest becomes zeros."""

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        """Copy the bytes from `start` to `end` of a memory to the same place in another."""

    def free_memory(self, memory: int) -> None:
        """Forget a memory."""
