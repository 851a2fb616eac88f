"""Data between a guest and something of the host, in both directions."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.host_peers import AnsweringHost, Conversation, ManualHost
from tests.abi.outside_sockets import (
    AF_INET,
    CAPACITY,
    EPOLL_ADD,
    EPOLLIN,
    EPOLLOUT,
    EPOLLRDHUP,
    NONBLOCK,
    STREAM,
    connected,
    inet,
    polled,
)
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLIN, POLLOUT, POLLRDHUP
from wasmsand.kernel.limits import Limits

pytestmark = pytest.mark.usefixtures("small_channels")


@pytest.mark.syscalls("read", "write")
def test_bytes_go_both_ways_until_the_end(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.write(fd, b"GET / HTTP/1.0\r\n\r\n")
    reading = caller.begin("read", fd, caller.room(100), 100)
    assert reading.is_blocked()
    with sandbox.lock:
        assert host.end.take(3) == b"GET"
        assert host.end.take() == b" / HTTP/1.0\r\n\r\n"
        assert host.end.take() == b""
        assert not host.end.at_end
        assert host.end.give(b"HTTP/1.0 200 OK\r\n") == 17
    assert reading.result() == 17
    with sandbox.lock:
        host.end.give(b"hello")
        host.end.finish()
        assert host.end.room == 0
    assert polled(caller, fd) == POLLIN | POLLOUT | POLLRDHUP
    assert (caller.read(fd), caller.read(fd)) == (b"hello", b"")
    caller.write(fd, b"more")  # only one direction has ended
    with sandbox.lock:
        assert host.end.take() == b"more"


@pytest.mark.needs_sources
@pytest.mark.syscalls("write", "ppoll_time64")
def test_a_host_that_does_not_take_makes_the_guest_wait(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host, NONBLOCK)
    before = sandbox.kernel.ledger.queued
    data = caller.room(CAPACITY * 2)
    assert caller.ok("write", fd, data, CAPACITY * 2) == CAPACITY
    assert caller.errno("write", fd, data, 1) is Errno.EAGAIN
    assert polled(caller, fd) == 0
    assert sandbox.kernel.ledger.queued - before == CAPACITY
    caller.ok("fcntl64", fd, 4, 0)
    writing = caller.begin("write", fd, data, CAPACITY)
    assert writing.is_blocked()
    with sandbox.lock:
        assert len(host.end.take(CAPACITY)) == CAPACITY
    assert writing.result() == CAPACITY
    with sandbox.lock:
        assert len(host.end.take(2 * CAPACITY)) == CAPACITY
    assert sandbox.kernel.ledger.queued == before
    assert polled(caller, fd) == POLLOUT


@pytest.mark.needs_sources
@pytest.mark.syscalls("read")
def test_a_guest_that_does_not_read_makes_the_host_wait(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    before = sandbox.kernel.ledger.queued
    woken: list[bool] = []
    with sandbox.lock:
        assert host.end.room == CAPACITY
        assert host.end.give(bytes(CAPACITY + 1)) == CAPACITY
        assert host.end.give(b"x") == 0
        host.end.changed.add(lambda: woken.append(True))
    assert sandbox.kernel.ledger.queued - before == CAPACITY
    assert len(caller.read(fd, 1000)) == 1000
    assert woken
    with sandbox.lock:
        assert host.end.give(bytes(CAPACITY)) == 1000


def test_the_host_is_told_when_the_sandbox_has_no_memory_for_its_bytes() -> None:
    sandbox = Sandbox(Limits(memory_limit_bytes=16 << 20))
    host = ManualHost()
    sandbox.kernel.network.outside = host
    caller = sandbox.process()
    connected(sandbox, caller, host)
    ledger = sandbox.kernel.ledger
    with sandbox.lock:
        room = ledger.kernel_max - ledger.objects - ledger.queued
        ledger.add_object(room - 100)
        with pytest.raises(Exception, match="memory_limit_bytes") as refusal:
            host.end.give(b"x" * 101)
        assert refusal.value.errno is Errno.ENOBUFS  # type: ignore[attr-defined]
        assert host.end.give(b"x" * 100) == 100


@pytest.mark.syscalls("epoll_ctl", "epoll_pwait")
def test_epoll_sees_what_the_host_does(sandbox: Sandbox, caller: Caller, host: ManualHost) -> None:
    fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
    epoll = caller.ok("epoll_create1", 0)
    events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | 1 << 31  # EPOLLET
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
    caller.ok("epoll_ctl", epoll, EPOLL_ADD, fd, caller.pack("I4xQ", events, 7))

    def seen() -> int:
        at = caller.room(16)
        if not caller.ok("epoll_pwait", epoll, at, 1, 0, 0, 8):
            return 0
        bits: int = caller.unpack("I", at)[0]
        return bits

    assert seen() == 0
    with sandbox.lock:
        host.end.establish()
    assert (seen(), seen()) == (EPOLLOUT, 0)
    with sandbox.lock:
        host.end.give(b"x")
    assert (seen(), seen()) == (EPOLLIN | EPOLLOUT, 0)
    waiting = caller.begin("epoll_pwait", epoll, caller.room(16), 1, -1, 0, 8)
    assert waiting.is_blocked()
    with sandbox.lock:
        host.end.finish()
    assert waiting.result() == 1


@pytest.mark.syscalls("sendto")
def test_an_urgent_byte_stays_in_the_stream(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.ok("sendto", fd, caller.put(b"now!"), 4, 1, 0, 0)  # MSG_OOB
    with sandbox.lock:
        assert host.end.take() + host.end.take() == b"now!"


def test_a_thread_of_the_host_echoes_more_than_fits_at_once(sandbox: Sandbox) -> None:
    def echo(conversation: Conversation) -> None:
        while data := conversation.read():
            conversation.write(data)

    host = AnsweringHost(sandbox.lock, echo)
    sandbox.kernel.network.outside = host
    caller = sandbox.process()
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    caller.ok("connect", fd, *inet(caller))
    sender = caller.fork()
    sent = bytes(range(256)) * 1024
    writing = sender.begin("write", fd, sender.put(sent), len(sent))
    got = b""
    while len(got) < len(sent):
        got += caller.read(fd, 60_000)
    assert got == sent
    assert writing.result() == len(sent)
    caller.ok("shutdown", fd, 1)
    assert caller.read(fd) == b""
    for thread in host.threads:
        thread.join(20)
    assert sandbox.kernel.ledger.queued == 0
