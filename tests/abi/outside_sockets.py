"""Sockets whose other end is something of the host: steps that their tests share."""

from __future__ import annotations

from struct import pack

from tests.abi.caller import Caller, Pending, Sandbox
from tests.abi.host_peers import ManualHost
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLIN, POLLOUT, POLLRDHUP

AF_INET, AF_INET6, STREAM, DATAGRAM = 2, 10, 1, 2
NONBLOCK, NOSIGNAL = 0o4000, 0x4000
SOL_SOCKET, SO_ERROR, SO_LINGER = 1, 4, 13
SERVER = b"\x5d\xb8\xd8\x22"
"""93.184.216.34."""
CAPACITY = 64 * 1024
"""Of connections with `small_channels`: the memory of a caller is small."""
EPOLL_ADD, EPOLLIN, EPOLLOUT, EPOLLRDHUP = 1, 0x1, 0x4, 0x2000


def inet(caller: Caller, host: bytes = SERVER, port: int = 80) -> tuple[int, int]:
    return caller.put(pack("<H", AF_INET) + port.to_bytes(2, "big") + host + bytes(8)), 16


def connecting(caller: Caller) -> tuple[int, Pending]:
    """A socket, and its connect, which waits for the host."""
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    waiting = caller.begin("connect", fd, *inet(caller))
    assert waiting.is_blocked()
    return fd, waiting


def started(caller: Caller) -> int:
    """A non-blocking socket, which the host has not connected yet."""
    fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
    return fd


def connected(sandbox: Sandbox, caller: Caller, host: ManualHost, flags: int = 0) -> int:
    """A socket that is connected to the host."""
    fd = started(caller)
    with sandbox.lock:
        host.end.establish()
    caller.ok("connect", fd, *inet(caller))
    if not flags & NONBLOCK:
        caller.ok("fcntl64", fd, 4, 0)
    return fd


def polled(caller: Caller, fd: int, wanted: int = POLLIN | POLLOUT | POLLRDHUP) -> int:
    at = caller.pack("IHH", fd, wanted, 0)
    caller.ok("ppoll_time64", at, 1, caller.pack("qq", 0, 0), 0, 0)
    bits: int = caller.unpack("IHH", at)[2]
    return bits


def pending_error(caller: Caller, fd: int) -> int:
    at = caller.room(4)
    caller.ok("getsockopt", fd, SOL_SOCKET, SO_ERROR, at, caller.pack("I", 4))
    error: int = caller.unpack("I", at)[0]
    return error


def address(caller: Caller, call: str, fd: int) -> tuple[bytes, int]:
    at = caller.room(16)
    caller.ok(call, fd, at, caller.pack("I", 16))
    raw = caller.get(at, 16)
    return raw[4:8], int.from_bytes(raw[2:4], "big")
