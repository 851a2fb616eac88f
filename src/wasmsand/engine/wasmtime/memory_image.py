"""Memory with which new instances start.

Owns `MappedImage`: memory in a file, and mapping that file over the memory of a new instance, in
place of the module's own data. It comes from a running instance (`captured_image`) or from a file
of the user space (`opened_image`). Rules: an image never changes. Instances map it privately, so
they share a page until one writes it. References to an image keep its file open, and mappings keep
its content. The instance must have the same code as the captured program, because the memory refers
to functions by number. The caller guarantees that; only the names of variables are checked.

A mapping ends with its instance. It lies in the address space that wasmtime reserved for this one
memory, and because memories are allocated on demand (see `config`), deleting the store unmaps all
of it: no later instance can see its pages. A pooling allocator would keep the mapping for the next
guest; `tests/engine/test_memory_image.py` would fail then.

Captured memory is in an unnamed file on disk, beside the compiled modules, if possible: the system
keeps its pages in larger units than those of a file in memory, and can reclaim them. Page faults
then take two thirds of the time; from a file in memory Python starts a seventh slower. A file of
the user space is checked against its hash once, and copied to the cache of compiled modules: nobody
else writes there, so that no running instance can lose its pages, and later host processes need not
check it again. Where nothing can be written, each host process checks the file and maps it.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wasmsand.engine.protocol import Start
from wasmsand.engine.stored_memory import StoredMemory, unreadable
from wasmsand.engine.wasmtime.bindings import CData, ffi, lib
from wasmsand.engine.wasmtime.touched_pages import writes_can_be_told, written_bytes

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.compile_cache import CompileCache
    from wasmsand.engine.wasmtime.instance import WasmtimeInstance

FILE_NAME = "wasmsand-memory-image"
"""The name in /proc/PID/maps of images that are not on disk."""

_FIXED = 0x10
"""MAP_FIXED, which Python's `mmap` does not name."""
_MAP_FAILED = ffi.cast("void *", -1)
_ZEROS = bytes(mmap.PAGESIZE)


class MappedImage:
    """Memory in a file; see `abilities.MemoryImage`."""

    def __init__(self, file: int, first: int, end: int, start: Start) -> None:
        """The memory from address `first` to `end`, both multiples of a page, is in `file`, a
        descriptor that now belongs to the image. Below, a new instance keeps its own content; above
        are zeros."""
        self.start = start
        self.size = start.memory_size
        self.shared_bytes = end - first if writes_can_be_told() else 0
        self.first = first
        self.end = end
        self._file = file
        weakref.finalize(self, os.close, file).atexit = False

    def lay_under(self, instance: WasmtimeInstance) -> None:
        """Replace the memory of a new instance, which is large enough, with this one.

        Raises `MemoryError` if there is no room; the instance is then unusable.
        """
        base = instance.memory_base
        map_over(base + self.first, self.end - self.first, mmap.MAP_PRIVATE, self._file)
        # The module may have data beyond the end of the image.
        rest = instance.memory_size() - self.end
        map_over(base + self.end, rest, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        instance.image = self

    def written_by(self, instance: WasmtimeInstance) -> int:
        """How many bytes of the image an instance has written, in whole pages."""
        address = int(ffi.cast("uintptr_t", instance.memory_base))
        return written_bytes(address + self.first, self.end - self.first)


def captured_image(
    memory: memoryview, first: int, start: Start, cache: CompileCache
) -> MappedImage:
    """Capture `memory` from `first` on.

    Raises `OSError` if unnamed files are not supported, or if there is no room for this one.
    """
    lowest = first - first % mmap.PAGESIZE
    writable = _new_file(cache)
    try:
        end = first
        for begin, end in _contents(memory, first):
            write_all(writable, memory[begin:end], begin - lowest)
        end = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(writable, end - lowest)
        file = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writable)
    return MappedImage(file, lowest, end, start)


def found_image(stored: StoredMemory, cache: CompileCache) -> MappedImage | None:
    """The image of a file that was checked before; None if there is no such copy."""
    path = cache.find_memory(stored.sha256)
    if path is None:
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    if os.fstat(file).st_size != stored.size:
        os.close(file)
        return None
    return MappedImage(file, stored.first, stored.first + stored.size, stored.start)


def opened_image(stored: StoredMemory, cache: CompileCache) -> MappedImage:
    """Check a file, keep a copy, and return its image. Raises `ModuleRejected`."""
    try:
        with stored.path.open("rb") as stream:
            entry = cache.begin_memory(stored.sha256)
            if entry is not None:
                with entry:
                    for piece in stored.pieces(stream):
                        entry.write(piece)
                    entry.commit()
                found = found_image(stored, cache)
                if found is not None:
                    return found
                stream.seek(0)
            for _ in stored.pieces(stream):
                pass
            file = os.dup(stream.fileno())
    except OSError as error:
        raise unreadable(stored, error) from None
    return MappedImage(file, stored.first, stored.first + stored.size, stored.start)


def _new_file(cache: CompileCache) -> int:
    if sys.platform != "linux":
        raise OSError("memory images need unnamed files, which only Linux has")
    try:
        return cache.unnamed_file()
    except OSError:  # no writable directory, or no unnamed files in it
        return os.memfd_create(FILE_NAME, os.MFD_CLOEXEC)


def _contents(memory: memoryview, first: int) -> Iterator[tuple[int, int]]:
    """The non-zero parts from `first` on, in whole pages."""
    page, size = mmap.PAGESIZE, len(memory)
    begin = None
    for start in range(first - first % page, size, page):
        at = max(start, first)
        end = min(start + page, size)
        if bytes(memory[at:end]) != _ZEROS[: end - at]:
            if begin is None:
                begin = at
        elif begin is not None:
            yield begin, start
            begin = None
    if begin is not None:
        yield begin, size


def write_all(file: int, content: memoryview, offset: int) -> None:
    """Write everything. Raises `OSError`."""
    while content:
        written = os.pwrite(file, content, offset)
        content, offset = content[written:], offset + written


def map_over(address: CData, size: int, flags: int, file: int, offset: int = 0) -> None:
    """Map a part of a file, or zeros, over the memory at `address`. Raises `MemoryError`."""
    access = mmap.PROT_READ | mmap.PROT_WRITE
    if size and lib.mmap(address, size, access, flags | _FIXED, file, offset) == _MAP_FAILED:
        raise MemoryError(f"cannot map {size} bytes of memory: {os.strerror(ffi.errno)}")
