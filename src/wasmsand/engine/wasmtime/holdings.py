"""What an instance holds of the host's memory beside its linear memory.

Owns reading three facts that wasmtime has but its C API does not tell: how large the heap of
exceptions is, which grows with every exception that is kept; and how large the record of the
instance is (globals, imports, references to functions). They are read where wasmtime's compiled
code reads them. Rules: the layout is that of `bindings.SUPPORTED_RELEASE`, it is checked with
every first instance of a module, and another one is an error; nothing is written there.

The heap of exceptions is bounded by the store's limit of memory, like the linear memory but
apart from it. Tables are bounded by number and size (`TableRoom`); what a process may hold is
charged, whether it does or not, since nothing tells the size of a table that is not exported.
"""

from __future__ import annotations

from typing import NamedTuple

from wasmsand.engine.wasmtime.bindings import SUPPORTED_RELEASE, CData, ffi

_MAGIC = b"core"
_POINTER_BYTES = 8
_REFERENCE_BYTES = 32
"""A function that is in a table has such a record as well."""


class TableRoom(NamedTuple):
    """How many tables an instance may have, and how many elements each."""

    tables: int
    elements: int

    @property
    def cost(self) -> int:
        """Bytes that they can take."""
        return self.tables * self.elements * (_POINTER_BYTES + _REFERENCE_BYTES)


def table_rooms(most: TableRoom, least_elements: int = 1024) -> list[TableRoom]:
    """The sizes that are tried for a module whose tables nobody knows, cheapest first."""
    sizes = [least_elements]
    while sizes[-1] < most.elements:
        sizes.append(min(sizes[-1] * 2, most.elements))
    rooms = [TableRoom(n, size) for n in range(1, most.tables + 1) for size in sizes]
    return sorted(rooms, key=lambda room: room.cost)


class LayoutUnknown(RuntimeError):
    """wasmtime keeps its records in another way than this package knows."""


def store_record(function: CData) -> CData:
    """The `store_record_t *` of the store that a `wasmtime_func_t *` is in. It is valid for as
    long as the store lives. The layout was checked with the module's first instance."""
    return ffi.cast("function_record_t *", function.function).instance.store


def checked_instance_bytes(function: CData, deadline: int) -> int:
    """Check the layout with a function of a store whose deadline is `deadline` epochs or more;
    returns the bytes of the instance's own record, all but its references to functions."""
    record = ffi.cast("function_record_t *", function.function)
    instance = record.instance
    if ffi.buffer(instance.magic)[:] != _MAGIC or instance.store.epoch_deadline < deadline:
        raise LayoutUnknown(f"this package knows wasmtime {SUPPORTED_RELEASE}.*, not this one")
    return int(ffi.cast("char *", record) - ffi.cast("char *", instance))
