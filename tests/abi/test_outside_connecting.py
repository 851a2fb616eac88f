"""Connections to something of the host (`kernel.sockets.outside`): how they begin."""

from __future__ import annotations

from struct import pack

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.host_peers import FORBIDDEN, OWN_HOST, ManualHost
from tests.abi.outside_sockets import (
    AF_INET,
    AF_INET6,
    DATAGRAM,
    NONBLOCK,
    SERVER,
    STREAM,
    address,
    connecting,
    inet,
    pending_error,
    polled,
    started,
)
from wasmsand.abi.context import ProcessEnded
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLERR, POLLHUP, POLLOUT


@pytest.mark.syscalls("connect", "getpeername", "getsockname")
def test_connect_waits_until_the_host_has_the_connection(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd, waiting = connecting(caller)
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
def test_a_connection_that_the_capability_refuses_fails_at_once(
    caller: Caller, host: ManualHost
) -> None:
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
def test_a_connection_that_fails_later_ends_the_waiting_call(
    sandbox: Sandbox, caller: Caller, host: ManualHost, error: Errno
) -> None:
    _, waiting = connecting(caller)
    with sandbox.lock:
        host.end.fail(error)
    assert -waiting.result() == error
    assert host.end.is_gone


@pytest.mark.syscalls("connect", "getsockopt", "ppoll_time64")
def test_a_non_blocking_connect_reports_success_through_poll(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = started(caller)
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
def test_a_non_blocking_connect_reports_its_failure_once(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = started(caller)
    with sandbox.lock:
        host.end.fail(Errno.ECONNREFUSED)
    assert polled(caller, fd) == POLLOUT | POLLERR | POLLHUP
    assert pending_error(caller, fd) == Errno.ECONNREFUSED
    assert pending_error(caller, fd) == 0
    assert caller.errno("connect", fd, *inet(caller)) is Errno.EINPROGRESS  # a new attempt
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
    _, waiting = connecting(caller)
    with sandbox.lock:
        host.end.close()
        host.end.establish()  # too late: it changes nothing
    assert -waiting.result() == Errno.ECONNREFUSED


def test_a_socket_bound_to_loopback_cannot_connect_outside(
    caller: Caller, host: ManualHost
) -> None:
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
def test_a_message_to_the_outside_is_answered_by_the_capability(
    caller: Caller, host: ManualHost
) -> None:
    fd = caller.ok("socket", AF_INET, DATAGRAM, 0)
    data = caller.put(b"query")
    assert caller.ok("sendto", fd, data, 5, 0, *inet(caller, port=53)) == 5
    into = caller.put(bytes(16))
    assert caller.ok("recvfrom", fd, into, 16, 0, 0, 0) == 5
    assert caller.memory.read(into, 5) == b"query"
    # A connected socket gets only the answers of its peer.
    caller.ok("connect", fd, *inet(caller, port=54))
    caller.ok("sendto", fd, data, 5, 0, *inet(caller, port=53))
    assert caller.errno("recvfrom", fd, into, 16, 0x40, 0, 0) is Errno.EAGAIN


def test_a_process_that_dies_while_it_connects_leaves_the_host_alone(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    _, waiting = connecting(caller)
    woken: list[bool] = []
    with sandbox.lock:
        host.end.changed.add(lambda: woken.append(True))
        sandbox.kernel.exit(caller.process, 9)
        assert host.end.is_gone
        assert host.end.at_end
        host.end.establish()  # the host does not know yet
        assert host.end.room == 0
    assert woken
    with pytest.raises(ProcessEnded):
        waiting.result()
