"""Sockets: sock_accept, sock_recv, sock_send, sock_shutdown.

Rules: these functions are not supported. Preview 1 has no way to make a socket; a program that
inherits one as a standard file reads and writes it by fd_read and fd_write. Every descriptor is
ENOTSOCK here, an inherited socket too; a number that is no descriptor is EBADF.
"""

from __future__ import annotations

from wasmsand.abi.wasi.context import WasiContext
from wasmsand.kernel.errno import Errno, KernelError


def _refuse(context: WasiContext, fd: int) -> int:
    """EBADF for a number that is no descriptor, ENOTSOCK for every other."""
    context.descriptors.get(fd)
    raise KernelError(Errno.ENOTSOCK)


def sock_accept(context: WasiContext, fd: int, flags: int, result: int) -> int:
    """Accept a connection: not supported."""
    return _refuse(context, fd)


def sock_recv(
    context: WasiContext, fd: int, vectors: int, count: int, flags: int, size: int, result: int
) -> int:
    """Receive a message: not supported."""
    return _refuse(context, fd)


def sock_send(
    context: WasiContext, fd: int, vectors: int, count: int, flags: int, size: int
) -> int:
    """Send a message: not supported."""
    return _refuse(context, fd)


def sock_shutdown(context: WasiContext, fd: int, how: int) -> int:
    """End one or both directions: not supported."""
    return _refuse(context, fd)
