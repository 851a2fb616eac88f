"""Connections of the host to servers in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.kernel.system import Woken, blocks, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLIN
from wasmsand.kernel.limits import BACKLOG_MAX, SOCKETS_MAX, Limits
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, InetAddress
from wasmsand.kernel.sockets.inbound import connect_inbound, is_listening, listening_ports
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.kernel.wait import WouldBlock

STREAM, NONBLOCK = 1, 0o4000
ANY, LOOPBACK, OTHER = bytes(4), b"\x7f\0\0\1", b"\x7f\0\0\5"
ANY6, LOOPBACK6, MAPPED = bytes(16), bytes(15) + b"\1", bytes(10) + b"\xff\xff" + LOOPBACK
SOL_IPV6, V6ONLY = 41, 26
SOL_SOCKET, REUSEADDR, REUSEPORT = 1, 2, 15

CAPACITY = 64 * 1024
"""Of the connections here: the memory of a caller is small."""


@pytest.fixture(autouse=True)
def _small_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wasmsand.kernel.sockets.outside.OUTSIDE_CAPACITY", CAPACITY)


def name(host: bytes, port: int) -> bytes:
    if len(host) == 4:
        return pack("<H", AF_INET) + port.to_bytes(2, "big") + host + bytes(8)
    return pack("<H", AF_INET6) + port.to_bytes(2, "big") + bytes(4) + host + bytes(4)


def listening(
    caller: Caller, host: bytes = LOOPBACK, port: int = 8000, backlog: int = 4, v6only: int = 0
) -> int:
    """A socket that listens."""
    family = AF_INET if len(host) == 4 else AF_INET6
    fd = caller.ok("socket", family, STREAM | NONBLOCK, 0)
    caller.ok("setsockopt", fd, SOL_SOCKET, REUSEADDR, caller.pack("I", 1), 4)
    if v6only:
        caller.ok("setsockopt", fd, SOL_IPV6, V6ONLY, caller.pack("I", 1), 4)
    raw = name(host, port)
    caller.ok("bind", fd, caller.put(raw), len(raw))
    caller.ok("listen", fd, backlog)
    return fd


def accepted(caller: Caller, fd: int) -> int:
    return caller.ok("accept4", fd, 0, 0, 0)


@pytest.fixture
def ends(sandbox: Sandbox) -> Iterator[list[OutsideEnd]]:
    """Ends that the test holds. Afterwards everything must have been given back."""
    ends: list[OutsideEnd] = []
    yield ends
    with sandbox.lock:
        sandbox.kernel.kill_all()
        for end in ends:
            end.close()
    network = sandbox.kernel.network
    assert (network.sockets, sandbox.kernel.pipes.in_use) == (0, 0)
    assert (sandbox.kernel.ledger.queued, sandbox.kernel.ledger.objects) == (0, 0)
    assert (network.tcp._bound, network.tcp._shared) == ({}, {})


def connect(sandbox: Sandbox, ends: list[OutsideEnd], port: int = 8000) -> OutsideEnd:
    with sandbox.lock:
        ends.append(connect_inbound(sandbox.kernel.network, port))
    return ends[-1]


@pytest.mark.syscalls("accept4", "getpeername", "getsockname")
@pytest.mark.parametrize(
    ("host", "seen"),
    [
        (LOOPBACK, name(LOOPBACK, 8000)),
        (ANY, name(LOOPBACK, 8000)),
        (ANY6, name(MAPPED, 8000)),
        (LOOPBACK6, name(LOOPBACK6, 8000)),
    ],
    ids=["127.0.0.1", "0.0.0.0", "::", "::1"],
)
def test_bytes_go_both_ways_between_the_host_and_a_server(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd], host: bytes, seen: bytes
) -> None:
    server = listening(caller, host)
    end = connect(sandbox, ends)
    with sandbox.lock:
        assert end.give(b"hello") == 5
    fd = accepted(caller, server)
    assert caller.read(fd) == b"hello"
    caller.write(fd, b"world")
    with sandbox.lock:
        assert end.take() == b"world"
        end.finish()
    assert caller.read(fd) == b""
    room, length = caller.room(28), caller.pack("I", 28)
    caller.ok("getsockname", fd, room, length)
    assert caller.get(room, len(seen)) == seen
    caller.ok("getpeername", fd, room, length)
    peer = caller.get(room, len(seen))
    assert peer[:2] + peer[4:] == seen[:2] + seen[4:]
    assert 32_768 <= int.from_bytes(peer[2:4], "big") < 61_000
    caller.ok("close", fd)
    with sandbox.lock:
        assert (end.is_gone, end.at_end, end.was_reset) == (True, True, False)


@pytest.mark.parametrize("host", [OTHER, None], ids=["127.0.0.5", "nothing"])
def test_a_port_on_which_nobody_listens_is_refused(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd], host: bytes | None
) -> None:
    if host is not None:
        listening(caller, host)
    fd = caller.ok("socket", AF_INET, STREAM, 0)  # bound, but not listening
    raw = name(LOOPBACK, 8000)
    caller.ok("bind", fd, caller.put(raw), len(raw))
    with sandbox.lock:
        network = sandbox.kernel.network
        assert not is_listening(network, 8000)
        assert errno_of(connect_inbound, network, 8000) is Errno.ECONNREFUSED
        assert errno_of(connect_inbound, network, 8001) is Errno.ECONNREFUSED
        assert listening_ports(network) == []


def test_an_exact_address_is_preferred_and_ipv4_comes_first(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    six = listening(caller, LOOPBACK6)
    four = listening(caller, LOOPBACK)
    connect(sandbox, ends)
    accepted(caller, four)
    assert caller.errno("accept4", six, 0, 0, 0) is Errno.EAGAIN
    caller.ok("close", four)
    connect(sandbox, ends)
    accepted(caller, six)


def test_a_socket_for_ipv6_only_is_reached_by_ipv6(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    server = listening(caller, ANY6, v6only=1)
    connect(sandbox, ends)
    accepted(caller, server)


def test_a_full_backlog_makes_the_host_wait_for_a_place(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    server = listening(caller, backlog=1)
    connect(sandbox, ends)
    connect(sandbox, ends)
    network = sandbox.kernel.network
    with sandbox.lock:
        sockets = network.sockets
        block = blocks(lambda: connect_inbound(network, 8000))
        assert network.sockets == sockets
        woken = Woken(block)
    accepted(caller, server)
    assert woken
    connect(sandbox, ends)
    with sandbox.lock:
        again = Woken(blocks(lambda: connect_inbound(network, 8000)))
    caller.ok("close", server)
    assert again
    with sandbox.lock:
        assert errno_of(connect_inbound, network, 8000) is Errno.ECONNREFUSED


@pytest.mark.parametrize("how", ["close", "shutdown"])
def test_a_server_that_stops_listening_resets_connections_it_has_not_accepted(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd], how: str
) -> None:
    server = listening(caller)
    end = connect(sandbox, ends)
    changes: list[None] = []
    with sandbox.lock:
        end.changed.add(lambda: changes.append(None))
        end.give(b"lost")
    if how == "close":
        caller.ok("close", server)
    else:
        caller.ok("shutdown", server, 0)
    assert changes
    with sandbox.lock:
        assert (end.is_gone, end.at_end, end.was_reset) == (True, True, True)
        assert not is_listening(sandbox.kernel.network, 8000)


def test_a_host_that_closes_before_it_was_accepted_leaves_its_data(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    server = listening(caller)
    end = connect(sandbox, ends)
    with sandbox.lock:
        end.give(b"only this")
        end.close()
    fd = accepted(caller, server)
    assert (caller.read(fd), caller.read(fd)) == (b"only this", b"")


@pytest.mark.syscalls("accept", "ppoll_time64")
def test_the_host_wakes_a_server_that_waits(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    server = listening(caller)
    at = caller.pack("IHH", server, POLLIN, 0)
    polling = caller.begin("ppoll_time64", at, 1, 0, 0, 0)
    assert polling.is_blocked()
    connect(sandbox, ends)
    assert polling.result() == 1
    caller.ok("accept", server, 0, 0)
    caller.ok("fcntl64", server, 4, 0)
    accepting = caller.begin("accept", server, 0, 0)
    assert accepting.is_blocked()
    connect(sandbox, ends)
    assert accepting.result() > 0


@pytest.mark.needs_sources
def test_the_host_waits_for_a_guest_that_does_not_read(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    server = listening(caller)
    end = connect(sandbox, ends)
    with sandbox.lock:
        assert end.give(bytes(2 * CAPACITY)) == CAPACITY
        assert end.room == 0
    fd = accepted(caller, server)
    caller.ok("read", fd, caller.room(CAPACITY), CAPACITY)
    with sandbox.lock:
        assert end.room == CAPACITY


def test_starting_to_listen_wakes_the_host(sandbox: Sandbox, caller: Caller) -> None:
    network = sandbox.kernel.network
    with sandbox.lock:
        woken = Woken(WouldBlock((network.listening,)))
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    raw = name(ANY, 8000)
    caller.ok("bind", fd, caller.put(raw), len(raw))
    assert not woken
    caller.ok("listen", fd, 1)
    assert woken
    with sandbox.lock:
        assert is_listening(network, 8000)


def test_listening_ports_are_listed_with_their_addresses(sandbox: Sandbox, caller: Caller) -> None:
    listening(caller, ANY6, 9000)
    listening(caller, ANY, 8001)
    listening(caller, LOOPBACK, 8000)
    listening(caller, LOOPBACK6, 8000)
    listening(caller, OTHER, 8002)
    network = sandbox.kernel.network
    pid = caller.process.pid
    with sandbox.lock:
        assert listening_ports(network) == [
            (8000, InetAddress(AF_INET, LOOPBACK, 8000), pid),
            (8000, InetAddress(AF_INET6, LOOPBACK6, 8000), pid),
            (8001, InetAddress(AF_INET, ANY, 8001), pid),
            (9000, InetAddress(AF_INET6, ANY6, 9000), pid),
        ]


def test_a_port_with_many_listeners_is_listed_once(sandbox: Sandbox, caller: Caller) -> None:
    raw = name(LOOPBACK, 8000)
    for _ in range(20):
        fd = caller.ok("socket", AF_INET, STREAM, 0)
        caller.ok("setsockopt", fd, SOL_SOCKET, REUSEPORT, caller.pack("I", 1), 4)
        caller.ok("bind", fd, caller.put(raw), len(raw))
        caller.ok("listen", fd, 1)
    with sandbox.lock:
        assert [found.port for found in listening_ports(sandbox.kernel.network)] == [8000]


def test_connections_of_the_host_count_as_sockets(
    sandbox: Sandbox, caller: Caller, ends: list[OutsideEnd]
) -> None:
    for port in range(8000, 8000 + SOCKETS_MAX // BACKLOG_MAX + 1):
        listening(caller, port=port, backlog=BACKLOG_MAX)
    network = sandbox.kernel.network
    with sandbox.lock:
        port = 8000
        while network.sockets < SOCKETS_MAX - 1:
            try:
                ends.append(connect_inbound(network, port))
            except WouldBlock:
                port += 1
        before = (network.sockets, sandbox.kernel.ledger.objects)
        assert errno_of(connect_inbound, network, port) is Errno.ENFILE
        assert (network.sockets, sandbox.kernel.ledger.objects) == before


def test_connections_of_the_host_are_charged() -> None:
    sandbox = Sandbox(limits=Limits(memory_limit_bytes=5 << 20))
    caller = sandbox.process()
    listening(caller, backlog=BACKLOG_MAX)
    network = sandbox.kernel.network
    ends = []
    with sandbox.lock:
        before = sandbox.kernel.ledger.objects
        ends.append(connect_inbound(network, 8000))
        each = sandbox.kernel.ledger.objects - before
        sandbox.kernel.ledger.kernel_max = before + 3 * each - 1
        ends.append(connect_inbound(network, 8000))
        sandbox.kernel.ledger.limit = 0
        assert errno_of(connect_inbound, network, 8000) is Errno.ENOBUFS
        assert sandbox.kernel.ledger.objects == before + 2 * each
        sandbox.kernel.kill_all()
        for end in ends:
            end.close()
        assert network.sockets == 0
