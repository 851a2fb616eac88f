"""Copying pages from the memory of one instance to that of another.

Owns `copy_runs` and `copy_over`. Rules: the result is the same whatever the system supports.

A new page costs a fault, which takes longer than copying the page: 1.5 us and 0.1 us. A huge page
(2 MB) also needs one fault. So whole huge pages of a run are copied to huge pages, which makes the
copy of a large memory six times faster. Of shorter runs the system prepares all pages with one
call, which saves a third. A huge page is used only where all of it is copied, so that no memory is
used that the program did not use already.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from typing import Final

from wasmsand.engine.wasmtime.bindings import CData, ffi, lib
from wasmsand.engine.wasmtime.layered_image import merged
from wasmsand.engine.wasmtime.memory_image import map_over

_HUGE_PAGE: Final = 2 << 20
_USE_HUGE_PAGES: Final[int | None] = getattr(mmap, "MADV_HUGEPAGE", None)
"""Only Linux has it."""
_MAKE_WRITABLE: Final = 23
"""MADV_POPULATE_WRITE, which Python does not name."""
_WORTH_A_CALL: Final = 8 * mmap.PAGESIZE


def copy_runs(
    source: CData, target: CData, runs: Iterable[tuple[int, int]], mapped_end: int
) -> None:
    """Copy these ranges of addresses (first and end) from one memory to another, which has at least
    the same size. Below `mapped_end` the target may be a private mapping of a file. Raises
    `MemoryError`."""
    if _USE_HUGE_PAGES is None:
        for first, end in runs:
            ffi.memmove(target + first, source + first, end - first)
        return
    address = int(ffi.cast("uintptr_t", target))
    for first, end in runs:
        if end - first >= _WORTH_A_CALL:
            low = -(-(address + first) // _HUGE_PAGE) * _HUGE_PAGE - address
            high = (address + end) // _HUGE_PAGE * _HUGE_PAGE - address
            if low < high:
                _prepare_huge(target + low, high - low, is_mapped=low < mapped_end)
                _prepare(target, first, low)
                _prepare(target, high, end)
            else:
                _prepare(target, first, end)
        ffi.memmove(target + first, source + first, end - first)


def copy_over(
    source: CData,
    target: CData,
    runs: Iterable[tuple[int, int]],
    stale: Sequence[tuple[int, int]],
    mapped_end: int,
) -> None:
    """Copy these ranges to a memory that another program has used, and the ranges that this program
    has written (`stale`). Both memories have at least that size. Raises `MemoryError`."""
    all_runs = merged([*runs, *stale])
    if _length(all_runs) - _length(stale) >= _WORTH_A_CALL:
        copy_runs(source, target, all_runs, mapped_end)
        return
    for first, end in all_runs:
        ffi.memmove(target + first, source + first, end - first)


def _length(runs: Iterable[tuple[int, int]]) -> int:
    return sum([end - first for first, end in runs])


def _prepare_huge(target: CData, size: int, *, is_mapped: bool) -> None:
    if is_mapped:  # files have no huge pages; everything here is overwritten
        map_over(target, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
    lib.madvise(target, size, _USE_HUGE_PAGES)


def _prepare(target: CData, first: int, end: int) -> None:
    if end - first >= _WORTH_A_CALL:
        page = mmap.PAGESIZE
        first -= first % page  # memories begin at a page
        lib.madvise(target + first, -(-(end - first) // page) * page, _MAKE_WRITABLE)
