"""Which pages a fork must copy."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import pytest

from wasmsand.engine.wasmtime import touched_pages
from wasmsand.engine.wasmtime.touched_pages import written_ranges

PAGE = mmap.PAGESIZE
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads the page map of Linux")


@pytest.fixture(params=["scan", "page map"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to ask the system: one that only newer ones have, and one for all."""
    if request.param == "page map":
        monkeypatch.setattr(touched_pages, "_can_scan", lambda: False)
    elif not touched_pages._can_scan():
        pytest.skip("the system cannot scan a page map")


def ranges(address: int, start: int, end: int) -> list[tuple[int, int]]:
    return list(written_ranges(address, start, end))


def address_of(area: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


@linux_only
def test_only_written_pages_of_fresh_memory_are_found() -> None:
    area = mmap.mmap(-1, 64 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = address_of(area)
    for page in (3, 10, 11, 63):
        area[page * PAGE + 5] = 1
    assert ranges(address, 0, 64 * PAGE) == [
        (3 * PAGE, 4 * PAGE),
        (10 * PAGE, 12 * PAGE),
        (63 * PAGE, 64 * PAGE),
    ]


@linux_only
def test_ranges_are_cut_to_what_was_asked_for() -> None:
    area = mmap.mmap(-1, 8 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = address_of(area)
    area[:] = bytes([1]) * (8 * PAGE)
    assert ranges(address, 100, 3 * PAGE + 7) == [(100, 3 * PAGE + 7)]
    assert ranges(address, PAGE, PAGE) == []
    assert ranges(address, PAGE + 1, PAGE) == []


@linux_only
def test_a_page_of_a_file_counts_only_once_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"x" * (8 * PAGE))
    with path.open("r+b") as file:
        area = mmap.mmap(file.fileno(), 8 * PAGE, flags=mmap.MAP_PRIVATE)
    address = address_of(area)
    assert area[:] == b"x" * (8 * PAGE)  # reads every page
    area[2 * PAGE] = 1
    assert ranges(address, 0, 8 * PAGE) == [(2 * PAGE, 3 * PAGE)]


def test_without_a_page_map_everything_counts_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched_pages, "_read_page_map", lambda first, pages: None)
    monkeypatch.setattr(touched_pages, "_can_scan", lambda: False)
    assert ranges(0x10000, 5, 12345) == [(5, 12345)]


@linux_only
def test_more_runs_than_one_answer_has_room_for_are_all_found() -> None:
    pages = 1000
    area = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, pages, 2):
        area[page * PAGE] = 1
    expected = [(page * PAGE, (page + 1) * PAGE) for page in range(0, pages, 2)]
    assert ranges(address_of(area), 0, pages * PAGE) == expected
