"""Sockets: sock_accept, sock_recv, sock_send, sock_shutdown.

Rules: these functions are not supported. Preview 1 cannot create sockets; a program that inherits a
socket as a standard file uses fd_read and fd_write. Here every descriptor, also an inherited
socket, is ENOTSOCK; an unknown number is EBADF.
"""

from __future__ import annotations

from wasmsand.abi.wasi.context import WasiContext
from wasmsand.kernel.errno import Errno, KernelError


def _refuse(context: WasiContext, fd: int) -> int:
    """EBADF for an unknown number, ENOTSOCK for every descriptor."""
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
    """Shut down one or both directions: not supported."""
    return _refuse(context, fd)
