"""Sockets: sock_accept, sock_recv, sock_send, sock_shutdown.

Rules: the kernel has no sockets, so no descriptor is one (ENOTSOCK).
"""

from __future__ import annotations

from wasmsand.abi.wasi.context import WasiContext
from wasmsand.kernel.errno import Errno, KernelError


def _require_socket(context: WasiContext, fd: int) -> int:
    context.descriptors.get(fd)
    raise KernelError(Errno.ENOTSOCK)


def sock_accept(context: WasiContext, fd: int, flags: int, result: int) -> int:
    """Take a connection."""
    return _require_socket(context, fd)


def sock_recv(
    context: WasiContext, fd: int, vectors: int, count: int, flags: int, size: int, result: int
) -> int:
    """Receive a message."""
    return _require_socket(context, fd)


def sock_send(
    context: WasiContext, fd: int, vectors: int, count: int, flags: int, size: int
) -> int:
    """Send a message."""
    return _require_socket(context, fd)


def sock_shutdown(context: WasiContext, fd: int, how: int) -> int:
    """End one or both directions."""
    return _require_socket(context, fd)
