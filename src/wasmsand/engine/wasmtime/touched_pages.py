"""Which pages of a guest's memory were ever written.

Owns reading the operating system's page map and the page faults of a thread. Rules: pages that it
cannot tell count as written. A page that was never written has the same content as in a new
instance of the module, so a fork need not copy it. Each skipped page saves a fault and a copy, 0.5
to 2 us; a query costs 6 ns per page and 1 us per run of written pages. A page that becomes private
needs a fault, so the count of faults, which takes half a microsecond, bounds how many pages were
written since the last query.

Linux only: elsewhere, and if the page map cannot be read, everything counts as written.
"""

from __future__ import annotations

import mmap
import os
import re
import threading
from collections.abc import Iterator
from functools import cache
from struct import Struct

from wasmsand.engine.forking import in_child
from wasmsand.engine.wasmtime.bindings import CData, ffi

try:
    from fcntl import ioctl
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # another system: `writes_can_be_told` finds out
    pass

_ENTRY_BYTES = 8
_PRESENT, _SWAPPED, _FILE = 0x80, 0x40, 0x20
"""Bits of an entry's highest byte. A private copy of a page is present or swapped and belongs to no
file; a page of the module's image that was only read belongs to its file."""
_WRITTEN_FLAG = bytes(
    int(bool(flags & _SWAPPED) or (flags & (_PRESENT | _FILE)) == _PRESENT) for flags in range(256)
)
_RUN_OF_WRITTEN = re.compile(rb"\x01+")

_SCAN = 0xC060_6610
"""The request PAGEMAP_SCAN."""
_SCAN_REQUEST = Struct("=12Q")
"""Its size, flags, the first address, the end, where the scan ended, the place for runs and how
many fit there, a limit, and four sets of categories: inverted ones, those that a page must have,
those of which it must have one, and those that make runs differ."""
_IS_FILE, _IS_PRESENT, _IS_SWAPPED, _IS_ZERO = 4, 8, 16, 32
_SCANNED_RUNS = 128
_RUN_WORDS = 3

_page_map: int | None = None
_open_lock = threading.Lock()


def _forget_page_map() -> None:
    # A file opened before the host forked shows the memory of the parent process.
    global _page_map, _open_lock
    _open_lock = threading.Lock()
    if _page_map is not None:
        os.close(_page_map)
        _page_map = None


in_child(_forget_page_map)


def _opened_page_map() -> int:
    global _page_map
    if _page_map is None:
        with _open_lock:
            if _page_map is None:
                _page_map = os.open("/proc/self/pagemap", os.O_RDONLY)
    return _page_map


def _read_page_map(first_page: int, pages: int) -> bytes | None:
    try:
        data = os.pread(_opened_page_map(), pages * _ENTRY_BYTES, first_page * _ENTRY_BYTES)
    except (OSError, AttributeError):
        return None
    return data if len(data) == pages * _ENTRY_BYTES else None


def _scan(address: int, size: int) -> list[tuple[int, int]] | None:
    """The addresses (first and end) of the runs of written pages; None if the system cannot
    tell."""
    end = address + size
    found: list[tuple[int, int]] = []
    runs: CData = ffi.new("uint64_t[]", _SCANNED_RUNS * _RUN_WORDS)
    place = int(ffi.cast("uintptr_t", runs))
    while address < end:
        request = bytearray(
            _SCAN_REQUEST.pack(
                _SCAN_REQUEST.size, 0, address, end, 0, place, _SCANNED_RUNS, 0,
                _IS_FILE | _IS_ZERO, _IS_FILE | _IS_ZERO, _IS_PRESENT | _IS_SWAPPED, _IS_PRESENT,
            )
        )  # fmt: skip
        try:
            count = ioctl(_opened_page_map(), _SCAN, request)
        except OSError:
            return None
        words = ffi.unpack(runs, count * _RUN_WORDS)
        # A run has three words: its first address, its end, and what is known of it.
        found += zip(words[::_RUN_WORDS], words[1::_RUN_WORDS], strict=True)
        if count < _SCANNED_RUNS:
            break
        address = words[-2]
    return found


@cache
def _can_scan() -> bool:
    """Whether the system can list the runs of written pages (Linux 6.7 and later)."""
    try:
        area = mmap.mmap(-1, 3 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area[mmap.PAGESIZE], _ = 1, area[0]
        address = int(ffi.cast("uintptr_t", ffi.from_buffer(area)))
        page = address + mmap.PAGESIZE
        return _scan(address, len(area)) == [(page, page + mmap.PAGESIZE)]
    except (OSError, ValueError, TypeError, AttributeError, NameError):
        return False


def written_ranges(
    address: int, start: int, end: int, *, certain: bool = False
) -> Iterator[tuple[int, int]]:
    """The parts of `start..end` (offsets from `address`) that may have been written; those that
    certainly have, if `certain`."""
    if start >= end:
        return
    page = mmap.PAGESIZE
    first = (address + start) // page
    pages = (address + end + page - 1) // page - first
    base = first * page - address
    runs = _scan(first * page, pages * page) if _can_scan() else None
    if runs is not None:
        for low, high in runs:
            yield max(start, low - address), min(end, high - address)
        return
    data = _read_page_map(first, pages)
    if data is None:
        if not certain:
            yield start, end
        return
    flags = data[_ENTRY_BYTES - 1 :: _ENTRY_BYTES].translate(_WRITTEN_FLAG)
    for run in _RUN_OF_WRITTEN.finditer(flags):
        yield max(start, base + run.start() * page), min(end, base + run.end() * page)


def written_bytes(address: int, size: int) -> int:
    """How many bytes of these pages may have been written."""
    page = mmap.PAGESIZE
    data = _read_page_map(address // page, size // page)
    if data is None:
        return size
    return data[_ENTRY_BYTES - 1 :: _ENTRY_BYTES].translate(_WRITTEN_FLAG).count(1) * page


def page_faults() -> int:
    """How many page faults without input or output this thread has had."""
    return getrusage(RUSAGE_THREAD).ru_minflt


@cache
def writes_can_be_told() -> bool:
    """Whether this system tells which pages of a private file mapping were written, and counts the
    faults of a thread. Tried once, with a small file."""
    page = mmap.PAGESIZE
    try:
        with os.fdopen(os.memfd_create("wasmsand-probe", os.MFD_CLOEXEC), "wb") as file:
            file.truncate(3 * page)
            area = mmap.mmap(file.fileno(), 3 * page, flags=mmap.MAP_PRIVATE)
        before = page_faults()
        area[page], _ = 1, area[0]
        told = written_bytes(int(ffi.cast("uintptr_t", ffi.from_buffer(area))), 3 * page)
        return told == page and page_faults() > before
    except (OSError, ValueError, TypeError, AttributeError, NameError):
        return False
