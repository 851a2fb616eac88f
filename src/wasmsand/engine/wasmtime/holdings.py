"""The host memory of an instance besides its linear memory.

Owns reading two sizes that wasmtime's C API does not provide: the exception heap, which grows with
every exception that is kept, and the record of the instance (globals, imports, function
references). They are read where wasmtime's compiled code reads them. Rules: the layout is that of
`bindings.SUPPORTED_RELEASE`; it is checked with the first instance of each module, and a different
layout is an error. Nothing is written there.

The exception heap is bounded by the store's memory limit, like the linear memory but separately.
Tables are bounded by number and size (`TableRoom`). A process is charged for the largest size of
its tables, because the actual size of a table that is not exported is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from wasmsand.engine.wasmtime.bindings import SUPPORTED_RELEASE, CData, ffi

_MAGIC = b"core"
_POINTER_BYTES = 8
_REFERENCE_BYTES = 32
"""A function in a table also has such a record."""


class TableRoom(NamedTuple):
    """How many tables an instance may have, and how many elements each."""

    tables: int
    elements: int

    @property
    def cost(self) -> int:
        """The most bytes that they can take."""
        return self.tables * self.elements * (_POINTER_BYTES + _REFERENCE_BYTES)


def table_rooms(most: TableRoom, least_elements: int = 1024) -> list[TableRoom]:
    """The sizes to try for a module whose tables are not known, cheapest first."""
    sizes = [least_elements]
    while sizes[-1] < most.elements:
        sizes.append(min(sizes[-1] * 2, most.elements))
    rooms = [TableRoom(n, size) for n in range(1, most.tables + 1) for size in sizes]
    return sorted(rooms, key=lambda room: room.cost)


class LayoutUnknown(RuntimeError):
    """The layout of wasmtime's records is not the one that this package knows."""


def store_record(function: CData) -> CData:
    """The `store_record_t *` of the store of a `wasmtime_func_t *`; valid as long as the store
    lives. The layout was checked with the module's first instance."""
    return ffi.cast("function_record_t *", function.function).instance.store


def checked_instance_bytes(function: CData, deadline: int) -> int:
    """Check the layout, with a function of a store whose deadline is at least `deadline` epochs
    away. Returns the size of the instance's record without its function references."""
    record = ffi.cast("function_record_t *", function.function)
    instance = record.instance
    if ffi.buffer(instance.magic)[:] != _MAGIC or instance.store.epoch_deadline < deadline:
        raise LayoutUnknown(f"unknown layout: only wasmtime {SUPPORTED_RELEASE}.* is supported")
    return int(ffi.cast("char *", record) - ffi.cast("char *", instance))
