"""Stateless character devices: null, zero, full, random, urandom.

Owns their behaviour by device number. Rules: the caller limits the size of reads, so that /dev/zero
cannot make the host allocate without bound. Random bytes come from the host's generator.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM, SEEK_CUR, SEEK_SET
from wasmsand.kernel.vfs import Namespace, Node, Stat


def device_number(major: int, minor: int) -> int:
    """Linux's dev_t for small major and minor numbers."""
    return (major << 8) | minor


NULL: Final = device_number(1, 3)
ZERO: Final = device_number(1, 5)
FULL: Final = device_number(1, 7)
RANDOM: Final = device_number(1, 8)
URANDOM: Final = device_number(1, 9)
TTY: Final = device_number(5, 0)
CONSOLE: Final = device_number(5, 1)
PTMX: Final = device_number(5, 2)
PTY_MAJOR: Final = 136


def _nothing(count: int) -> bytes:
    return b""


_READERS: Final[dict[int, Callable[[int], bytes]]] = {
    NULL: _nothing,
    ZERO: bytes,
    FULL: bytes,
    RANDOM: os.urandom,
    URANDOM: os.urandom,
}


class SimpleDevice(OpenFile):
    """An open null, zero, full, random or urandom."""

    __slots__ = ("_namespace", "_node", "_reader", "number")

    def __init__(self, number: int, flags: int, namespace: Namespace, node: Node) -> None:
        reader = _READERS.get(number)
        if reader is None:
            raise KernelError(Errno.ENXIO, f"no device {number >> 8}:{number & 255}")
        super().__init__(flags)
        self.number = number
        self._reader = reader
        self._namespace = namespace
        self._node = node
        namespace.retain(node)

    @property
    def node(self) -> Node | None:
        return self._node

    def read(self, count: int) -> bytes:
        return self._reader(count)

    def read_at(self, count: int, offset: int) -> bytes:
        return self._reader(count)

    def write(self, data: bytes) -> int:
        if self.number == FULL and data:
            raise KernelError(Errno.ENOSPC, "/dev/full")
        return len(data)

    def write_at(self, data: bytes, offset: int) -> int:
        return self.write(data)

    def seek(self, offset: int, whence: int) -> int:
        if whence not in (SEEK_SET, SEEK_CUR, 2):
            raise KernelError(Errno.EINVAL)
        return 0

    def poll(self) -> int:
        return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM

    def stat(self) -> Stat:
        return self._namespace.stat(self._node)

    def release(self) -> None:
        self._namespace.release(self._node)
