"""Captured memory with which new instances start.

Owns `MappedImage`: captured memory in an unnamed file, and mapping that file over the memory of a
new instance, in place of the module's own data. Rules: an image never changes (its file is
read-only). Instances map it privately, so they share a page until one writes it. References to an
image keep its file open, and mappings keep its content. The instance must have the same code as the
captured program, because the memory refers to functions by number. The caller guarantees that; only
the names of variables are checked.

A mapping ends with its instance. It lies in the address space that wasmtime reserved for this one
memory, and because memories are allocated on demand (see `config`), deleting the store unmaps all
of it: no later instance can see its pages. A pooling allocator would keep the mapping for the next
guest; `tests/engine/test_memory_image.py` would fail then.

The file is on disk, beside the compiled modules, if possible: the system keeps its pages in larger
units than those of a file in memory, and can reclaim them. Page faults then take two thirds of the
time, and Python starts as fast as from its module; from a file in memory it starts a seventh
slower. Like a fork, an image has the memory and the exported i32 variables.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from wasmsand.engine.wasmtime.bindings import CData, ffi, lib

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
    """Captured memory; see `abilities.MemoryImage`."""

    def __init__(
        self, memory: memoryview, first: int, variables: Mapping[str, int], cache: CompileCache
    ) -> None:
        """Capture `memory` from `first` on; below that, a new instance keeps its own content.

        Raises `OSError` if unnamed files are not supported, or if there is no room for this one.
        """
        self.size = len(memory)
        self.variables = MappingProxyType(dict(variables))
        self._start = first - first % mmap.PAGESIZE
        writable = _new_file(cache)
        try:
            end = first
            for begin, end in _contents(memory, first):
                _write(writable, memory[begin:end], begin - self._start)
            self._end = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
            os.ftruncate(writable, self._end - self._start)
            self._file = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(writable)
        weakref.finalize(self, os.close, self._file).atexit = False

    def lay_under(self, instance: WasmtimeInstance) -> None:
        """Replace the memory and variables of a new instance with those of this image.

        Raises `MemoryError` if there is no room; the instance is then unusable.
        """
        if instance.memory_size() < self.size and not instance.grow_memory(self.size):
            raise MemoryError(f"no room for a memory of {self.size} bytes")
        base = instance.memory_base
        _map(base + self._start, self._end - self._start, mmap.MAP_PRIVATE, self._file)
        # The module may have data beyond the end of the image.
        rest = instance.memory_size() - self._end
        _map(base + self._end, rest, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        self.set_variables(instance)
        instance.image = self

    def set_variables(self, instance: WasmtimeInstance) -> None:
        """Set the captured variables in an instance, or in a thread of one."""
        for name, value in self.variables.items():
            instance.set_variable(name, value)


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


def _write(file: int, content: memoryview, offset: int) -> None:
    while content:
        written = os.pwrite(file, content, offset)
        content, offset = content[written:], offset + written


def _map(address: CData, size: int, flags: int, file: int) -> None:
    """Map the start of a file, or zeros, over the memory at `address`."""
    access = mmap.PROT_READ | mmap.PROT_WRITE
    if size and lib.mmap(address, size, access, flags | _FIXED, file, 0) == _MAP_FAILED:
        raise MemoryError(f"cannot map {size} bytes of memory: {os.strerror(ffi.errno)}")
