"""Guest memory: the one place where guest pointers are followed.

Owns `GuestMemory`. Rules: every address and length comes from a hostile guest; each
is checked against the memory's size before a byte moves; a bad one is EFAULT.
Python slices never wrap or read outside the view, but they clamp silently: hence
the explicit check in each method.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import PATH_MAX

if TYPE_CHECKING:
    from wasmsand.engine.protocol import Instance

_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")
_STRING_STEP: Final = 256


class GuestMemory:
    """Bounds-checked reads and writes of one instance's linear memory."""

    __slots__ = ("_grown", "_instance", "_size", "_view")

    def __init__(self, instance: Instance, grown: Callable[[], None] | None = None) -> None:
        """`grown` is called when the memory is found to have grown, before it is used."""
        self._instance = instance
        self._grown = grown
        self._view = instance.memory()
        self._size = len(self._view)

    def _require(self, end: int) -> None:
        """EFAULT unless memory reaches `end`; memory may have grown since the last look."""
        if end > self._size:
            view = self._instance.memory()
            if len(view) > self._size:
                if self._grown is not None:
                    self._grown()
                self._view, self._size = view, len(view)
            if end > self._size:
                raise KernelError(Errno.EFAULT)

    def read(self, address: int, count: int) -> bytes:
        """`count` bytes at `address`."""
        end = address + count
        if end > self._size:
            self._require(end)
        return bytes(self._view[address:end])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store all of `data` at `address`, or nothing."""
        end = address + len(data)
        if end > self._size:
            self._require(end)
        self._view[address:end] = data

    def require(self, address: int, count: int) -> None:
        """EFAULT now rather than after data has been taken from its source."""
        end = address + count
        if end > self._size:
            self._require(end)

    def read_u32(self, address: int) -> int:
        """A little-endian unsigned word."""
        if address + 4 > self._size:
            self._require(address + 4)
        return int(_U32.unpack_from(self._view, address)[0])

    def write_u32(self, address: int, value: int) -> None:
        """Store a word; the value is taken modulo 2**32."""
        if address + 4 > self._size:
            self._require(address + 4)
        _U32.pack_into(self._view, address, value & 0xFFFF_FFFF)

    def read_u64(self, address: int) -> int:
        """A little-endian unsigned double word."""
        if address + 8 > self._size:
            self._require(address + 8)
        return int(_U64.unpack_from(self._view, address)[0])

    def write_u64(self, address: int, value: int) -> None:
        """Store a double word; the value is taken modulo 2**64."""
        if address + 8 > self._size:
            self._require(address + 8)
        _U64.pack_into(self._view, address, value & 0xFFFF_FFFF_FFFF_FFFF)

    def unpack(self, layout: Struct, address: int) -> tuple[Any, ...]:
        """A C struct."""
        end = address + layout.size
        if end > self._size:
            self._require(end)
        return layout.unpack_from(self._view, address)

    def pack(self, layout: Struct, address: int, *values: Any) -> None:
        """Store a C struct."""
        end = address + layout.size
        if end > self._size:
            self._require(end)
        layout.pack_into(self._view, address, *values)

    def read_string(self, address: int, limit: int, too_long: Errno) -> bytes:
        """The NUL-terminated string at `address`, of fewer than `limit` bytes."""
        if address >= self._size:
            self._require(address + 1)
        parts: list[bytes] = []
        length = 0
        while True:
            piece = bytes(self._view[address : address + _STRING_STEP])
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
            if address >= self._size:
                self._require(address + 1)

    def read_path(self, address: int) -> bytes:
        """A path argument: ENAMETOOLONG from 4096 bytes on."""
        path, end, _ = self._view[address : address + _STRING_STEP].tobytes().partition(b"\0")
        return path if end else self.read_string(address, PATH_MAX, Errno.ENAMETOOLONG)
