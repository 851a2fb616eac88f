"""The end of a process with the most sockets allowed holds the lock for bounded work."""

from __future__ import annotations

import time
from collections.abc import Callable
from struct import pack

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import BACKLOG_MAX, MESSAGES_MAX, SOCKETS_MAX, Limits

BOUND_MS = 60
AF_UNIX, AF_INET, STREAM, DATAGRAM = 1, 2, 1, 2
NONBLOCK = 0o4000
SOL_SOCKET, KEEPALIVE = 1, 9
PORT = 5000


def address(caller: Caller) -> tuple[int, int]:
    return caller.put(pack("<H", AF_INET) + PORT.to_bytes(2, "big") + b"\x7f\0\0\1" + bytes(8)), 16


def listener(caller: Caller) -> int:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    caller.ok("bind", fd, *address(caller))
    caller.ok("listen", fd, BACKLOG_MAX)
    return fd


def burden(caller: Caller, epoll: int, fd: int) -> None:
    """Give a socket unread data, an option and a watch."""
    caller.ok("write", fd, caller.put(b"x"), 1)
    caller.ok("setsockopt", fd, SOL_SOCKET, KEEPALIVE, caller.pack("I", 1), 4)
    caller.ok("epoll_ctl", epoll, 1, fd, caller.pack("I4xQ", 5, 1))


def connections(caller: Caller) -> None:
    epoll = caller.ok("epoll_create1", 0)
    listening = listener(caller)
    for _ in range((SOCKETS_MAX - 1) // 2):
        client = caller.ok("socket", AF_INET, STREAM, 0)
        caller.ok("connect", client, *address(caller))
        burden(caller, epoll, client)
        burden(caller, epoll, caller.ok("accept4", listening, 0, 0, 0))


def not_accepted(caller: Caller) -> None:
    epoll = caller.ok("epoll_create1", 0)
    listener(caller)
    for _ in range(BACKLOG_MAX):
        client = caller.ok("socket", AF_INET, STREAM, 0)
        caller.ok("connect", client, *address(caller))
        burden(caller, epoll, client)


def messages(caller: Caller) -> None:
    at, data = caller.room(8), caller.room(8)
    for _ in range(SOCKETS_MAX // 2):
        caller.ok("socketpair", AF_UNIX, DATAGRAM | NONBLOCK, 0, at)
        for fd in caller.unpack("II", at):
            for _ in range(MESSAGES_MAX // SOCKETS_MAX):
                caller.ok("write", fd, data, 1)
    assert caller.errno("write", 0, data, 1) is Errno.ENOBUFS


@pytest.mark.parametrize("make", [connections, not_accepted, messages])
def test_the_end_of_a_process_with_very_many_sockets_is_one_short_hold(
    make: Callable[[Caller], None],
) -> None:
    sandbox = Sandbox(Limits(max_open_files=40_000))
    caller = sandbox.process()
    make(caller)
    network = sandbox.kernel.network
    assert network.sockets > 2 * BACKLOG_MAX
    began = time.thread_time()
    sandbox.kernel.exit(caller.process, 9)
    took = (time.thread_time() - began) * 1000
    assert (network.sockets, network.messages) == (0, 0)
    assert took < BOUND_MS, f"{took:.1f} ms"
