"""Guest memory: the only place where guest pointers are followed.

Owns `GuestMemory`. Rules: every address and length comes from a hostile guest and is checked
against the size of the memory before a byte is copied; a bad one is EFAULT. A call writes either
everything it was asked to, or nothing.

There are two implementations. `CopiedMemory` only needs an engine that copies in and out.
`ViewedMemory` has a view of the whole memory, which is ten times faster for a word. It repeats the
check in each method, because a separate function would cost a third of a system call. The check is
necessary: Python slices never wrap or read outside the view, but they clamp silently.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from wasmsand.engine.compiled import COMPILED
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import PATH_MAX

if TYPE_CHECKING:
    from wasmsand.engine.protocol import LinearMemory

_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")
_STRING_STEP: Final = 256
# What the compiled form has in C: a slice of a view is two objects.
_read: Final[Any] = None if COMPILED is None else COMPILED.read
_read_string: Final[Any] = None if COMPILED is None else COMPILED.read_string
_write: Final[Any] = None if COMPILED is None else COMPILED.write
Part = tuple[int, int]
"""An address and a length."""


class CopiedWords:
    """Double words of a memory that is accessed by copies only, with the methods of a memoryview
    that their users need."""

    __slots__ = ("_address", "_count", "_memory")

    def __init__(self, memory: GuestMemory, address: int, count: int) -> None:
        self._memory: GuestMemory | None = memory
        self._address = address
        self._count = count

    def _open(self) -> GuestMemory:
        if self._memory is None:
            raise ValueError("operation on released words")
        return self._memory

    def __getitem__(self, index: int) -> int:
        return self._open().read_u64(self._address + index * _U64.size)

    def __setitem__(self, index: int, value: int) -> None:
        self._open().write_u64(self._address + index * _U64.size, value)

    def tobytes(self) -> bytes:
        """All words, little-endian."""
        return self._open().read(self._address, self._count * _U64.size)

    def replace(self, content: bytes) -> None:
        """Write all words."""
        self._open().write(self._address, content)

    def release(self) -> None:
        """The memory is about to go: another use is an error."""
        self._memory = None


Words = memoryview | CopiedWords
"""Double words that the program may change at any time. Each access is one load or store."""


class GuestMemory:
    """Bounds-checked reads and writes of one instance's linear memory."""

    __slots__ = ("_grown", "_instance", "_size")

    def __init__(self, instance: LinearMemory, grown: Callable[[], None] | None, size: int) -> None:
        self._instance = instance
        self._grown = grown
        self._size = size

    @staticmethod
    def of(instance: LinearMemory, grown: Callable[[], None] | None = None) -> GuestMemory:
        """The fastest access to this memory. `grown` is called when the memory is found to have
        grown, before the new part is used."""
        view = instance.memory_view()
        if view is None:
            return CopiedMemory(instance, grown, instance.memory_size())
        return ViewedMemory(instance, grown, view)

    # Overridden by the implementations.

    def _look_again(self) -> int:
        """Make the current size usable, and return it."""
        raise NotImplementedError

    def read(self, address: int, count: int) -> bytes:
        """Read `count` bytes at `address`."""
        raise NotImplementedError

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `address`, or nothing."""
        raise NotImplementedError

    def read_u32(self, address: int) -> int:
        """Read a little-endian unsigned word."""
        return int.from_bytes(self.read(address, 4), "little")

    def write_u32(self, address: int, value: int) -> None:
        """Write a word, modulo 2**32."""
        self.write(address, _U32.pack(value & 0xFFFF_FFFF))

    def read_u64(self, address: int) -> int:
        """Read a little-endian unsigned double word."""
        return int.from_bytes(self.read(address, 8), "little")

    def write_u64(self, address: int, value: int) -> None:
        """Write a double word, modulo 2**64."""
        self.write(address, _U64.pack(value & 0xFFFF_FFFF_FFFF_FFFF))

    def unpack(self, layout: Struct, address: int) -> tuple[Any, ...]:
        """Read a C struct."""
        return layout.unpack(self.read(address, layout.size))

    def pack(self, layout: Struct, address: int, *values: Any) -> None:
        """Write a C struct."""
        self.write(address, layout.pack(*values))

    def words(self, address: int, count: int) -> Words:
        """The double words at `address`, for as long as the memory exists. EFAULT if they do not
        lie in the memory now; it never shrinks."""
        self.require(address, count * _U64.size)
        return CopiedWords(self, address, count)

    def read_path(self, address: int) -> bytes:
        """Read a path argument; ENAMETOOLONG from 4096 bytes on."""
        return self.read_string(address, PATH_MAX, Errno.ENAMETOOLONG)

    # Common to the implementations.

    def _require(self, end: int) -> None:
        """EFAULT if the memory is smaller than `end`; it may have grown since the last check."""
        if end > self._size:
            size = self._instance.memory_size()
            if size > self._size:
                if self._grown is not None:
                    self._grown()
                self._size = self._look_again()
            if end > self._size:
                raise KernelError(Errno.EFAULT)

    def require(self, address: int, count: int) -> None:
        """EFAULT if a range is invalid: check it before data is taken from its source."""
        end = address + count
        if end > self._size:
            self._require(end)

    def read_string(self, address: int, limit: int, too_long: Errno) -> bytes:
        """Read a NUL-terminated string of fewer than `limit` bytes."""
        parts: list[bytes] = []
        length = 0
        while True:
            self.require(address, 1)
            piece = self.read(address, min(_STRING_STEP, self._size - address))
            nul = piece.find(0)
            if nul >= 0:
                length += nul
                if length >= limit:
                    raise KernelError(too_long)
                return piece[:nul] if not parts else b"".join(parts) + piece[:nul]
            length += len(piece)
            if length >= limit:
                raise KernelError(too_long)
            parts.append(piece)
            address += len(piece)

    def gather(self, parts: Sequence[Part]) -> bytes:
        """Read and join all parts."""
        pieces = [self.read(start, length) for start, length in parts]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def scatter(self, parts: Sequence[Part], data: bytes) -> None:
        """Write `data` to these parts, as far as it goes."""
        position = 0
        for start, length in parts:
            if position >= len(data):
                break
            self.write(start, data[position : position + length])
            position += length


class CopiedMemory(GuestMemory):
    """Memory that is accessed by copies only."""

    __slots__ = ()

    def _look_again(self) -> int:
        return self._instance.memory_size()

    def read(self, address: int, count: int) -> bytes:
        """Read `count` bytes at `address`."""
        self.require(address, count)
        return self._instance.read(address, count)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `address`, or nothing."""
        self.require(address, len(data))
        self._instance.write(address, data)


class ViewedMemory(GuestMemory):
    """Memory that the host addresses directly."""

    __slots__ = ("_view",)

    def __init__(
        self, instance: LinearMemory, grown: Callable[[], None] | None, view: memoryview
    ) -> None:
        super().__init__(instance, grown, len(view))
        self._view = view

    def _look_again(self) -> int:
        view = self._instance.memory_view()
        assert view is not None  # it had one before
        self._view = view
        return len(view)

    def read(self, address: int, count: int) -> bytes:
        """Read `count` bytes at `address`."""
        end = address + count
        if end > self._size:
            self._require(end)
        if COMPILED is not None:
            return cast(bytes, _read(self._view, address, count))
        return bytes(self._view[address:end])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `address`, or nothing."""
        end = address + len(data)
        if end > self._size:
            self._require(end)
        if COMPILED is not None:
            _write(self._view, address, data)
        else:
            self._view[address:end] = data

    def read_u32(self, address: int) -> int:
        """Read a little-endian unsigned word."""
        if address + 4 > self._size:
            self._require(address + 4)
        return int(_U32.unpack_from(self._view, address)[0])

    def write_u32(self, address: int, value: int) -> None:
        """Write a word, modulo 2**32."""
        if address + 4 > self._size:
            self._require(address + 4)
        _U32.pack_into(self._view, address, value & 0xFFFF_FFFF)

    def read_u64(self, address: int) -> int:
        """Read a little-endian unsigned double word."""
        if address + 8 > self._size:
            self._require(address + 8)
        return int(_U64.unpack_from(self._view, address)[0])

    def write_u64(self, address: int, value: int) -> None:
        """Write a double word, modulo 2**64."""
        if address + 8 > self._size:
            self._require(address + 8)
        _U64.pack_into(self._view, address, value & 0xFFFF_FFFF_FFFF_FFFF)

    def unpack(self, layout: Struct, address: int) -> tuple[Any, ...]:
        """Read a C struct."""
        end = address + layout.size
        if end > self._size:
            self._require(end)
        return layout.unpack_from(self._view, address)

    def pack(self, layout: Struct, address: int, *values: Any) -> None:
        """Write a C struct."""
        end = address + layout.size
        if end > self._size:
            self._require(end)
        layout.pack_into(self._view, address, *values)

    def words(self, address: int, count: int) -> Words:
        """The double words at `address`, as a view of the memory."""
        if sys.byteorder != "little":
            return super().words(address, count)
        end = address + count * _U64.size
        self.require(address, end - address)
        return self._view[address:end].cast("Q")

    def read_string(self, address: int, limit: int, too_long: Errno) -> bytes:
        """Read a NUL-terminated string of fewer than `limit` bytes."""
        text, end, _ = self._view[address : address + _STRING_STEP].tobytes().partition(b"\0")
        if end and len(text) < limit:  # most strings are short
            return text
        return super().read_string(address, limit, too_long)

    def read_path(self, address: int) -> bytes:
        """Read a path argument; ENAMETOOLONG from 4096 bytes on."""
        if COMPILED is not None:
            found = _read_string(self._view, address, _STRING_STEP)
            if found is not None:
                return cast(bytes, found)
            return self.read_string(address, PATH_MAX, Errno.ENAMETOOLONG)
        path, end, _ = self._view[address : address + _STRING_STEP].tobytes().partition(b"\0")
        return path if end else self.read_string(address, PATH_MAX, Errno.ENAMETOOLONG)
