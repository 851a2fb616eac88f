"""The memory of a program that is copied more than once.

Owns `LayeredImage`: large parts of a program's memory in an unnamed file in memory, over the image
with which the program began. Rules: what anybody can see of the file never changes. The program and
its copies map it privately, so they share a page until one of them writes it. Only long runs of
written pages are in the file (`_RUN_MIN`), and only a few of them (`_SEGMENTS_MAX`), because each
is a mapping of every copy and the system limits their number. The other written pages stay with
the program, and each copy gets its own. Most of them are written all the time anyway.

A program is still charged for what is in the file, as if it were its own. So charges do not depend
on how many copies share it. The file is freed with the last program or copy that uses it. While
only one uses it, the pages that this one has overwritten are freed (`written_by`, which is called
when the program is charged), unless the host has forked: then the other process uses the file too.
While several programs use it, the file may keep pages that all of them have overwritten: at most
one memory for all of them together.

Linux only. Elsewhere every copy has its own pages.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wasmsand.engine.wasmtime.bindings import ffi, lib
from wasmsand.engine.wasmtime.memory_image import MappedImage, map_over, write_all
from wasmsand.engine.wasmtime.touched_pages import (
    writes_can_be_told,
    written_bytes,
    written_ranges,
)

if TYPE_CHECKING:
    from wasmsand.engine.protocol import Start
    from wasmsand.engine.wasmtime.instance import WasmtimeInstance

FILE_NAME: Final = "wasmsand-shared-memory"
"""The name in /proc/PID/maps."""
_SEGMENTS_MAX: Final = 16
_RUN_MIN: Final = 256 << 10
"""A page in a mapping of its own costs as much as a copy of it."""
_WORTHWHILE: Final = 1 << 20
"""Bytes that have to be new, or else the file is not worth its descriptor."""
_PART_NEW: Final = 4
"""A program that has a file already gets a new one if this part of its memory is new."""

FILES_MAX: Final = 128
"""Files of this process at the same time: each needs a descriptor, and a server needs most of them
for connections. Copies of further programs have their own pages."""
_PUNCH_HOLE: Final = 3
"""FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE."""

_images: weakref.WeakSet[LayeredImage] = weakref.WeakSet()
_forks = 0
"""How often the host has forked."""


def _host_forks() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_host_forks)

Segment = tuple[int, int]


class LayeredImage:
    """An image, and parts of a memory over it; see `abilities.MemoryImage`."""

    def __init__(
        self, base: MappedImage | None, file: int, segments: tuple[Segment, ...], start: Start
    ) -> None:
        """`file` is a descriptor that now belongs to the image; offsets are addresses."""
        self.base = base
        """None: the data of the module."""
        self.start = start
        self.size = start.memory_size
        self.shared_bytes = 0 if base is None else base.shared_bytes
        """What is charged only when it is written: the same as for other instances of the program,
        so not what is in the file."""
        self.segments = segments
        self._users: weakref.WeakSet[WasmtimeInstance] = weakref.WeakSet()
        # Reentrant: garbage collection may close an instance while this thread holds it.
        self._lock = threading.RLock()
        """Guards `_users`."""
        self._forks = _forks
        self._freed = 0
        """Bytes that the only user had overwritten when they were last freed."""
        self.end = max(segments[-1][1], 0 if base is None else base.end)
        self._file = file
        weakref.finalize(self, os.close, file).atexit = False
        _images.add(self)

    def lay_under(self, instance: WasmtimeInstance) -> None:
        """See `MappedImage`."""
        if self.base is not None:
            self.base.lay_under(instance)
        self.lay_over(instance)

    def lay_over(self, instance: WasmtimeInstance) -> None:
        """Map the file over the memory of an instance, where it has the same content.

        Raises `MemoryError` if there is no room. The content is then still the same, and this is
        its image: pages of the instance that are not mapped count as written.
        """
        instance.use_image(self)
        for first, end in self.segments:
            map_over(instance.memory_base + first, end - first, mmap.MAP_PRIVATE, self._file, first)

    def written_by(self, instance: WasmtimeInstance) -> int:
        """How many bytes of `base` are not used by an instance, because they are in the file, or
        because it has written them."""
        base = self.base
        address = int(ffi.cast("uintptr_t", instance.memory_base))
        with self._lock:
            is_alone = len(self._users) == 1
        # A further user would be a copy of this one, with its pages.
        if is_alone and self._forks == _forks:
            self._free_overwritten(address)
        if base is None:
            return 0
        count, next_first = 0, base.first
        for first, end in self.segments:
            first, end = max(first, base.first), min(end, base.end)
            if first < end:
                count += end - first + written_bytes(address + next_first, first - next_first)
                next_first = end
        return count + written_bytes(address + next_first, base.end - next_first)

    def joined(self, instance: WasmtimeInstance) -> None:
        """An instance uses the image."""
        with self._lock:
            self._users.add(instance)

    def left(self, instance: WasmtimeInstance) -> None:
        """An instance no longer uses it."""
        with self._lock:
            self._users.discard(instance)

    def _free_overwritten(self, address: int) -> None:
        """Free what the only user has overwritten. The system keeps the user's own pages."""
        runs = [
            run
            for first, end in self.segments
            for run in written_ranges(address, first, end, certain=True)
        ]
        written = _total(runs)
        if written - self._freed >= _WORTHWHILE:
            self._freed = written
            for first, end in runs:
                lib.fallocate(self._file, _PUNCH_HOLE, first, end - first)


def share_memory(program: WasmtimeInstance) -> None:
    """Put the large parts of the memory of a program, which does not compute now, into a file that
    its copies share. The content of the memory stays the same. Does nothing if that is not
    worthwhile or not possible: copies then have their own pages."""
    if sys.platform != "linux" or not writes_can_be_told():
        return
    image = program.image
    base, before = (image.base, image.segments) if isinstance(image, LayeredImage) else (image, ())
    address = int(ffi.cast("uintptr_t", program.memory_base))
    low = 0 if program.is_fork_copy else program.stack_reserve()
    low = -(-low // mmap.PAGESIZE) * mmap.PAGESIZE
    size = program.memory_size()
    new = [run for run in written_ranges(address, low, size) if run[1] - run[0] >= _RUN_MIN]
    if _total(new) < max(_WORTHWHILE, _total(before) // _PART_NEW):
        return
    segments = _largest(merged([*new, *before]))
    if not _covers(segments, before) or len(_images) >= FILES_MAX:
        return
    try:
        file = _file_with(program.memory_view(), segments)
    except OSError:  # too many descriptors, or no room
        return
    layered = LayeredImage(base, file, segments, replace(program.start, memory_size=size))
    try:
        layered.lay_over(program)
    except MemoryError:
        pass  # its copies share the file, if there is room


def _file_with(memory: memoryview, segments: Iterable[Segment]) -> int:
    file = os.memfd_create(FILE_NAME, os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, len(memory))
        for first, end in segments:
            write_all(file, memory[first:end], first)
    except BaseException:
        os.close(file)
        raise
    return file


def _total(segments: Iterable[Segment]) -> int:
    return sum(end - first for first, end in segments)


def merged(segments: Iterable[Segment]) -> list[Segment]:
    """The same addresses, in order, in segments that do not touch."""
    merged: list[Segment] = []
    for first, end in sorted(segments):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return merged


def _largest(segments: list[Segment]) -> tuple[Segment, ...]:
    largest = sorted(segments, key=lambda segment: segment[0] - segment[1])[:_SEGMENTS_MAX]
    return tuple(sorted(largest))


def _covers(segments: Iterable[Segment], others: Iterable[Segment]) -> bool:
    return all(any(s[0] <= o[0] and o[1] <= s[1] for s in segments) for o in others)
