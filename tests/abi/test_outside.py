"""Streams whose other end is something of the host (`kernel.sockets.outside`)."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.host_peers import FORBIDDEN, OWN_HOST, AnsweringHost, Conversation, ManualHost
from wasmsand.abi.context import ProcessEnded
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDHUP,
)
from wasmsand.kernel.limits import PIPE_CAPACITY, SOCKETS_MAX, Limits

AF_INET, AF_INET6, STREAM, DATAGRAM = 2, 10, 1, 2
NONBLOCK, NOSIGNAL = 0o4000, 0x4000
SOL_SOCKET, SO_ERROR, SO_LINGER = 1, 4, 13
SERVER = b"\x5d\xb8\xd8\x22"
"""93.184.216.34."""
EPOLL_ADD, EPOLLIN, EPOLLOUT, EPOLLRDHUP = 1, 0x1, 0x4, 0x2000


@pytest.fixture
def host(sandbox: Sandbox) -> Iterator[ManualHost]:
    """The capability of the test's sandbox. Afterwards everything must have been given back."""
    host = ManualHost()
    sandbox.kernel.network.outside = host
    yield host
    with sandbox.lock:
        sandbox.kernel.kill_all()
        for _, end in host.asked:
            end.close()
    network = sandbox.kernel.network
    assert (network.sockets, sandbox.kernel.pipes.in_use) == (0, 0)
    assert sandbox.kernel.ledger.queued == 0
    assert network.tcp._bound == {}


def inet(caller: Caller, host: bytes = SERVER, port: int = 80) -> tuple[int, int]:
    return caller.put(pack("<H", AF_INET) + port.to_bytes(2, "big") + host + bytes(8)), 16


def connected(sandbox: Sandbox, caller: Caller, host: ManualHost, flags: int = 0) -> int:
    """A socket that is connected to the host."""
    fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
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


# Connecting.


@pytest.mark.syscalls("connect", "getpeername", "getsockname")
def test_connect_waits_until_the_host_has_the_connection(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    waiting = caller.begin("connect", fd, *inet(caller))
    assert waiting.is_blocked()
    ((destination, end),) = host.asked
    assert destination == (AF_INET, SERVER, 80)
    with sandbox.lock:
        end.establish()
    assert waiting.result() == 0
    assert address(caller, "getpeername", fd) == (SERVER, 80)
    own_host, port = address(caller, "getsockname", fd)
    assert own_host == OWN_HOST
    assert port >= 32_768
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EISCONN


@pytest.mark.syscalls("connect")
def test_what_the_capability_refuses_fails_at_once(caller: Caller, host: ManualHost) -> None:
    for flags in (0, NONBLOCK):
        fd = caller.ok("socket", AF_INET, STREAM | flags, 0)
        assert caller.errno("connect", fd, *inet(caller, FORBIDDEN)) is Errno.EACCES
        assert caller.errno("getpeername", fd, *inet(caller)) is Errno.ENOTCONN
        assert pending_error(caller, fd) == 0
    assert host.asked == []


@pytest.mark.syscalls("connect")
def test_without_the_capability_the_network_is_unreachable(caller: Caller) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    assert caller.errno("connect", fd, *inet(caller)) is Errno.ENETUNREACH


@pytest.mark.parametrize("error", [Errno.ECONNREFUSED, Errno.ETIMEDOUT, Errno.EHOSTUNREACH])
def test_a_connection_that_fails_later_is_told_to_who_waits(
    sandbox: Sandbox, caller: Caller, host: ManualHost, error: Errno
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    waiting = caller.begin("connect", fd, *inet(caller))
    assert waiting.is_blocked()
    with sandbox.lock:
        host.end.fail(error)
    assert -waiting.result() == error
    assert host.end.is_gone


@pytest.mark.syscalls("connect", "getsockopt", "ppoll_time64")
def test_a_non_blocking_connect_tells_its_success_by_poll(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EALREADY
    assert caller.errno("write", fd, caller.put(b"x"), 1) is Errno.EAGAIN
    assert polled(caller, fd) == 0
    with sandbox.lock:
        host.end.establish()
    assert polled(caller, fd) == POLLOUT
    assert pending_error(caller, fd) == 0
    assert caller.write(fd, b"x") == 1
    caller.ok("connect", fd, *inet(caller))
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EISCONN


@pytest.mark.syscalls("connect", "getsockopt", "ppoll_time64")
def test_a_non_blocking_connect_tells_its_failure_once(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
    with sandbox.lock:
        host.end.fail(Errno.ECONNREFUSED)
    assert polled(caller, fd) == POLLOUT | POLLERR | POLLHUP
    assert pending_error(caller, fd) == Errno.ECONNREFUSED
    assert pending_error(caller, fd) == 0
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS  # a fresh start
    with sandbox.lock:
        host.end.establish()
    assert polled(caller, fd) == POLLOUT


def test_a_failed_socket_can_connect_inside_afterwards(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    assert caller.errno("connect", fd, *inet(caller, FORBIDDEN)) is Errno.EACCES
    listener = caller.ok("socket", AF_INET, STREAM, 0)
    loopback = inet(caller, b"\x7f\0\0\1", 8080)
    caller.ok("bind", listener, *loopback)
    caller.ok("listen", listener, 1)
    caller.ok("connect", fd, *loopback)
    assert address(caller, "getsockname", fd)[0] == b"\x7f\0\0\1"
    assert host.asked == []


def test_a_host_that_closes_before_it_connects_has_refused(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    waiting = caller.begin("connect", fd, *inet(caller))
    assert waiting.is_blocked()
    with sandbox.lock:
        host.end.close()
        host.end.establish()  # too late: it changes nothing
    assert -waiting.result() == Errno.ECONNREFUSED


def test_a_socket_bound_to_loopback_does_not_get_out(caller: Caller, host: ManualHost) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    caller.ok("bind", fd, *inet(caller, b"\x7f\0\0\1", 0))
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINVAL


def test_ipv6_sockets_reach_ipv4_by_mapped_addresses(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    def six(raw: bytes) -> tuple[int, int]:
        return caller.put(pack("<HHI16sI", AF_INET6, 80 << 8, 0, raw, 0)), 28

    fd = caller.ok("socket", AF_INET6, STREAM | NONBLOCK, 0)
    real = b"\x20\x01\x0d\xb8" + bytes(12)
    assert caller.errno("connect", fd, *six(real)) is Errno.ENETUNREACH
    mapped = bytes(10) + b"\xff\xff" + SERVER
    assert caller.errno("connect", fd, *six(mapped)) is Errno.EINPROGRESS
    assert host.asked[0][0] == (AF_INET, SERVER, 80)
    with sandbox.lock:
        host.end.establish()
    at = caller.room(28)
    caller.ok("getpeername", fd, at, caller.pack("I", 28))
    assert caller.get(at + 8, 16) == mapped


@pytest.mark.syscalls("sendto")
def test_messages_do_not_leave_the_sandbox(caller: Caller, host: ManualHost) -> None:
    fd = caller.ok("socket", AF_INET, DATAGRAM, 0)
    data = caller.put(b"query")
    assert caller.errno("sendto", fd, data, 5, 0, *inet(caller, port=53)) is Errno.ENETUNREACH
    assert caller.errno("connect", fd, *inet(caller, port=53)) is Errno.ENETUNREACH


def test_a_process_that_dies_while_it_connects_leaves_the_host_alone(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    waiting = caller.begin("connect", fd, *inet(caller))
    assert waiting.is_blocked()
    woken: list[bool] = []
    with sandbox.lock:
        host.end.changed.add(lambda: woken.append(True))
        sandbox.kernel.exit(caller.process, 9)
        assert host.end.is_gone
        assert host.end.at_end
        host.end.establish()  # the host did not know yet
        assert host.end.room == 0
    assert woken
    with pytest.raises(ProcessEnded):
        waiting.result()


# Moving data.


@pytest.mark.syscalls("read", "write")
def test_bytes_go_both_ways_and_then_the_end_comes(
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


@pytest.mark.syscalls("write", "ppoll_time64")
def test_a_host_that_does_not_take_makes_the_guest_wait(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host, NONBLOCK)
    before = sandbox.kernel.ledger.queued
    data = caller.room(PIPE_CAPACITY * 2)
    assert caller.ok("write", fd, data, PIPE_CAPACITY * 2) == PIPE_CAPACITY
    assert caller.errno("write", fd, data, 1) is Errno.EAGAIN
    assert polled(caller, fd) == 0
    assert sandbox.kernel.ledger.queued - before == PIPE_CAPACITY
    caller.ok("fcntl64", fd, 4, 0)
    writing = caller.begin("write", fd, data, PIPE_CAPACITY)
    assert writing.is_blocked()
    with sandbox.lock:
        assert len(host.end.take(PIPE_CAPACITY)) == PIPE_CAPACITY
    assert writing.result() == PIPE_CAPACITY
    with sandbox.lock:
        assert len(host.end.take(2 * PIPE_CAPACITY)) == PIPE_CAPACITY
    assert sandbox.kernel.ledger.queued == before
    assert polled(caller, fd) == POLLOUT


@pytest.mark.syscalls("read")
def test_a_guest_that_does_not_read_makes_the_host_wait(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    before = sandbox.kernel.ledger.queued
    woken: list[bool] = []
    with sandbox.lock:
        assert host.end.room == PIPE_CAPACITY
        assert host.end.give(bytes(PIPE_CAPACITY + 1)) == PIPE_CAPACITY
        assert host.end.give(b"x") == 0
        host.end.changed.add(lambda: woken.append(True))
    assert sandbox.kernel.ledger.queued - before == PIPE_CAPACITY
    assert len(caller.read(fd, 1000)) == 1000
    assert woken
    with sandbox.lock:
        assert host.end.give(bytes(PIPE_CAPACITY)) == 1000


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


# Parting.


@pytest.mark.syscalls("recvfrom", "sendto")
def test_a_reset_is_told_after_what_had_arrived(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.write(fd, b"lost")
    with sandbox.lock:
        host.end.give(b"arrived")
        host.end.fail(Errno.ECONNRESET)
    room = caller.room(8)
    assert polled(caller, fd) & (POLLIN | POLLERR) == POLLIN | POLLERR
    assert caller.read(fd) == b"arrived"
    assert caller.errno("recvfrom", fd, room, 8, 0, 0, 0) is Errno.ECONNRESET
    assert caller.read(fd) == b""
    assert caller.errno("sendto", fd, room, 1, NOSIGNAL, 0, 0) is Errno.EPIPE
    assert sandbox.kernel.ledger.queued == 0


def test_a_reset_wakes_a_guest_that_waits(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    reading = caller.begin("read", fd, caller.room(8), 8)
    assert reading.is_blocked()
    with sandbox.lock:
        host.end.fail(Errno.ETIMEDOUT)
    assert -reading.result() == Errno.ETIMEDOUT


def test_what_is_written_after_the_host_has_closed_is_answered_by_a_reset(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    with sandbox.lock:
        host.end.give(b"bye")
        host.end.close()
    assert (caller.read(fd), caller.read(fd)) == (b"bye", b"")
    assert caller.write(fd, b"lost") == 4
    assert caller.errno("sendto", fd, caller.room(1), 1, NOSIGNAL, 0, 0) is Errno.EPIPE


def test_a_host_that_closes_wakes_a_guest_that_waits_for_room(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.ok("rt_sigprocmask", 0, caller.pack("Q", 1 << 12), 0, 8)  # SIGPIPE
    data = caller.room(PIPE_CAPACITY + 1)
    writing = caller.begin("write", fd, data, PIPE_CAPACITY + 1)
    assert writing.is_blocked()
    with sandbox.lock:
        host.end.close()
    assert writing.result() == PIPE_CAPACITY + 1  # the last byte is answered by a reset


@pytest.mark.syscalls("shutdown")
def test_the_host_sees_the_end_of_one_direction(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.write(fd, b"all")
    caller.ok("shutdown", fd, 1)
    with sandbox.lock:
        assert not host.end.at_end
        assert host.end.take() == b"all"
        assert host.end.at_end
        assert not host.end.is_gone
        assert host.end.give(b"answer") == 6
    assert caller.read(fd) == b"answer"


@pytest.mark.syscalls("close")
def test_what_a_guest_wrote_before_it_closed_can_still_be_taken(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.write(fd, b"last words")
    caller.ok("close", fd)
    with sandbox.lock:
        assert (host.end.is_gone, host.end.was_reset, host.end.at_end) == (True, False, False)
        assert host.end.give(b"nobody reads this") == 0
        assert host.end.take() == b"last words"
        assert host.end.at_end


@pytest.mark.parametrize("linger", [False, True])
def test_a_guest_that_closes_with_unread_bytes_or_without_lingering_resets(
    sandbox: Sandbox, caller: Caller, host: ManualHost, linger: bool
) -> None:
    fd = connected(sandbox, caller, host)
    caller.write(fd, b"lost")
    if linger:
        caller.ok("setsockopt", fd, SOL_SOCKET, SO_LINGER, caller.pack("II", 1, 0), 8)
    else:
        with sandbox.lock:
            host.end.give(b"unread")
    caller.ok("close", fd)
    with sandbox.lock:
        assert (host.end.is_gone, host.end.was_reset, host.end.at_end) == (True, True, True)
        assert host.end.take() == b""
    assert sandbox.kernel.ledger.queued == 0


def test_ends_that_the_host_has_not_closed_are_counted(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    """What a guest wrote and left waits for the host: a guest must not pile that up."""
    objects = sandbox.kernel.ledger.objects
    for _ in range(SOCKETS_MAX - 1):
        fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
        assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
        caller.ok("close", fd)
    fd = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
    assert caller.errno("connect", fd, *inet(caller)) is Errno.ENFILE
    with sandbox.lock:
        host.end.close()
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS
    assert sandbox.kernel.ledger.objects > objects + 1000 * SOCKETS_MAX
    with sandbox.lock:
        for _, end in host.asked:
            end.close()
    caller.ok("close", fd)
    assert sandbox.kernel.ledger.objects == objects


# A host with threads.


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
