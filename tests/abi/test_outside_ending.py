"""Connections to something of the host: how they end, on either side."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.host_peers import ManualHost
from tests.abi.outside_sockets import (
    AF_INET,
    CAPACITY,
    NONBLOCK,
    NOSIGNAL,
    SO_LINGER,
    SOL_SOCKET,
    STREAM,
    connected,
    inet,
    polled,
    started,
)
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLERR, POLLIN
from wasmsand.kernel.limits import SOCKETS_MAX

pytestmark = pytest.mark.usefixtures("small_channels")


@pytest.mark.syscalls("recvfrom", "sendto")
def test_a_reset_is_reported_after_the_data_that_had_arrived(
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


def test_writing_after_the_host_has_closed_causes_a_reset(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    with sandbox.lock:
        host.end.give(b"bye")
        host.end.close()
    assert (caller.read(fd), caller.read(fd)) == (b"bye", b"")
    assert caller.write(fd, b"lost") == 4
    assert caller.errno("sendto", fd, caller.room(1), 1, NOSIGNAL, 0, 0) is Errno.EPIPE


@pytest.mark.needs_sources
def test_a_host_that_closes_wakes_a_guest_that_waits_for_room(
    sandbox: Sandbox, caller: Caller, host: ManualHost
) -> None:
    fd = connected(sandbox, caller, host)
    caller.ok("rt_sigprocmask", 0, caller.pack("Q", 1 << 12), 0, 8)  # SIGPIPE
    data = caller.room(CAPACITY + 1)
    writing = caller.begin("write", fd, data, CAPACITY + 1)
    assert writing.is_blocked()
    with sandbox.lock:
        host.end.close()
    assert writing.result() == CAPACITY + 1  # the last byte is answered by a reset


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
def test_the_host_can_take_what_a_guest_wrote_before_it_closed(
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
    """Data of closed sockets waits for the host, and a guest must not accumulate it."""
    objects = sandbox.kernel.ledger.objects
    for _ in range(SOCKETS_MAX - 1):
        caller.ok("close", started(caller))
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
