"""Kernel objects and queued data are on the sandbox's ledger for as long as they exist."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.objects import (
    AF_INET,
    AF_UNIX,
    DATAGRAM,
    KINDS,
    NONBLOCK,
    STREAM,
    connection,
    inet,
    listener,
    one_of_each,
    pair,
    prepare,
    receiver,
    send,
    send_fds,
    unix,
)
from wasmsand.abi.context import ProcessEnded
from wasmsand.compiled_kernel import chosen
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import (
    BACKLOG_MAX,
    KERNEL_UNCHARGED_MAX,
    PORT_HOLDERS_MAX,
    RIGHTS_IN_FLIGHT_MAX,
    SOCKETS_MAX,
    Limits,
)

MIB = 1024 * 1024
KERNEL_MIB = KERNEL_UNCHARGED_MAX // MIB


def kernel_bytes(sandbox: Sandbox) -> tuple[int, int]:
    ledger = sandbox.kernel.ledger
    return ledger.objects, ledger.queued


def end_all(sandbox: Sandbox) -> None:
    with sandbox.lock:
        sandbox.kernel.kill_all()


def test_everything_is_given_back_when_the_processes_end(sandbox: Sandbox) -> None:
    before = kernel_bytes(sandbox)
    caller = sandbox.process()
    one_of_each(caller)
    waiting = sandbox.process()
    waiting.ok("mknodat", -100, b"/tmp/lonely", 0o010644, 0)
    opening = waiting.begin("openat", -100, b"/tmp/lonely", 0, 0)
    assert opening.is_blocked()
    objects, queued = kernel_bytes(sandbox)
    assert objects > 100_000
    assert queued > 60_000
    end_all(sandbox)
    with pytest.raises(ProcessEnded):
        opening.result()
    assert kernel_bytes(sandbox) == before
    network = sandbox.kernel.network
    assert (network.sockets, network.rights.in_flight) == (0, 0)
    assert sandbox.kernel.watches.count == 0
    assert sandbox.kernel.pipes.in_use == 0


def test_everything_is_given_back_when_it_is_closed(sandbox: Sandbox, caller: Caller) -> None:
    before = kernel_bytes(sandbox)
    one_of_each(caller)
    for child in list(caller.process.children.values()):
        with sandbox.lock:
            sandbox.kernel.exit(child, 0)
        caller.ok("wait4", child.pid, 0, 0, 0)
    caller.ok("close_range", 0, 0xFFFF_FFFF, 0)
    sandbox.kernel.network.rights.collect()  # as when a process ends
    assert kernel_bytes(sandbox) == before


def test_calls_that_fail_leave_nothing_on_the_ledger(sandbox: Sandbox, caller: Caller) -> None:
    caller.ok("prlimit64", 0, 7, caller.pack("QQ", 3, 1024), 0)  # RLIMIT_NOFILE
    caller.process.fds.limit = 3
    caller.pipe()
    before = kernel_bytes(sandbox)
    assert caller.errno("pipe2", caller.room(8), 0) is Errno.EMFILE
    assert caller.errno("socketpair", AF_UNIX, STREAM, 0, caller.room(8)) is Errno.EMFILE
    assert caller.ok("socket", AF_INET, STREAM, 0) == 2
    caller.ok("close", 2)
    assert caller.errno("socketpair", AF_INET, STREAM, 0, caller.room(8)) is Errno.EOPNOTSUPP
    assert kernel_bytes(sandbox) == before


@pytest.mark.parametrize("kind", KINDS)
def test_costs_are_close_to_what_objects_take(kind: str) -> None:
    """Compares with tracemalloc: what Python allocates for 300 more of them. Objects of a compiled
    kernel may take less."""
    sandbox = Sandbox(Limits(max_open_files=20_000, max_processes=1000))
    caller = sandbox.process()
    prepare(caller)
    make = KINDS[kind]
    for number in range(32):
        make(caller, number)
    gc.collect()
    tracemalloc.start()
    try:
        first, *_ = tracemalloc.get_traced_memory()
        entered = sum(kernel_bytes(sandbox))
        for number in range(32, 332):
            make(caller, number)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    entered = sum(kernel_bytes(sandbox)) - entered
    assert taken / 1.25 < entered, (entered // 300, taken // 300)
    if not chosen().is_used:
        assert entered < taken * 4, (entered // 300, taken // 300)


# What happens at the limit.


@pytest.fixture
def small() -> Sandbox:
    """A sandbox with little memory."""
    return Sandbox(Limits(memory_limit_bytes=4 * MIB, max_open_files=100_000, max_processes=64))


def fill_objects(sandbox: Sandbox) -> None:
    ledger = sandbox.kernel.ledger
    ledger.objects += ledger.kernel_max - ledger.objects - ledger.queued


def test_opening_is_enomem_when_memory_is_used_up(small: Sandbox) -> None:
    caller = small.process()
    caller.make_file(b"/tmp/file", b"content")
    source, sink = caller.pipe()
    caller.write(sink, b"x")
    fill_objects(small)
    used = small.kernel.ledger.used
    room = caller.room(64)
    for call, *arguments in (
        ("openat", -100, b"/tmp/file", 0o1001, 0),
        ("openat", -100, b"/tmp/new", 0o101, 0o644),
        ("socket", AF_INET, STREAM, 0),
        ("socketpair", AF_UNIX, STREAM, 0, room),
        ("pipe2", room, 0),
        ("eventfd2", 0, 0),
        ("timerfd_create", 1, 0),
        ("epoll_create1", 0),
        ("dup", source),
        ("write", sink, room, 1),
        ("openat", -100, b"/dev/ptmx", 2, 0),
    ):
        assert caller.errno(call, *arguments) is Errno.ENOMEM, call
    assert small.kernel.ledger.used == used
    caller.ok("close", sink)
    assert caller.read(source) == b"x"
    # Closed objects made room; failed calls truncated nothing and created nothing.
    assert caller.content(b"/tmp/file") == b"content"
    assert caller.errno("openat", -100, b"/tmp/new", 0, 0) is Errno.ENOENT


def test_sending_is_enobufs_when_memory_is_used_up(small: Sandbox) -> None:
    caller = small.process()
    one, two = pair(caller)
    three, _ = pair(caller, DATAGRAM)
    udp = receiver(caller, 6000)
    listening = listener(caller, 5000)
    client = caller.ok("socket", AF_INET, STREAM, 0)
    fill_objects(small)
    assert -send(caller, one, b"x") == Errno.ENOBUFS
    assert -send(caller, three, b"x") == Errno.ENOBUFS
    assert -send(caller, udp, b"x", inet(caller, 6000)) == Errno.ENOBUFS
    assert -send_fds(caller, one, two) == Errno.ENOBUFS
    assert caller.errno("connect", client, *inet(caller, 5000)) is Errno.ENOBUFS
    small.kernel.ledger.objects -= MIB
    caller.ok("connect", client, *inet(caller, 5000))
    caller.ok("accept4", listening, 0, 0, 0)
    assert send(caller, one, b"x") == 1


def test_a_process_is_not_made_when_memory_is_used_up(small: Sandbox) -> None:
    caller = small.process()
    caller.pipe()
    fill_objects(small)
    before = small.kernel.ledger.used
    assert caller.driver.fork_allowed() == -Errno.ENOMEM
    assert caller.errno("clone", 0x4111, 0, 0, 0, 0) is Errno.ENOMEM
    assert small.kernel.ledger.used == before


def test_a_guest_that_has_all_memory_can_still_open_and_write(small: Sandbox) -> None:
    caller = small.process()
    ledger = small.kernel.ledger
    ledger.change_programs(ledger.room, 0, 0)
    source, sink = caller.pipe()
    caller.write(sink, b"out of memory\n")
    assert caller.read(source) == b"out of memory\n"
    assert ledger.room == 0


def test_connections_that_nobody_accepts_are_held_by_the_limit(small: Sandbox) -> None:
    caller = small.process()
    listeners = [listener(caller, 5000 + number) for number in range(16)]
    data = b"x" * 60_000
    made = 0
    while True:
        client = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
        result = caller.call("connect", client, *inet(caller, 5000 + made % 16))
        sent = send(caller, client, data)
        caller.ok("close", client)
        if sent < 0:
            break
        made += 1
    assert -sent in (Errno.ENOBUFS, Errno.EPIPE, Errno.ENOTCONN), (result, sent)
    assert made < 8 * MIB // 60_000
    assert small.kernel.ledger.used <= 4 * MIB + KERNEL_UNCHARGED_MAX
    for fd in listeners:
        caller.ok("close", fd)
    assert sum(kernel_bytes(small)) < MIB // 2
    listener(caller, 5000)
    assert send(caller, connection(caller, 5000), data) == len(data)


def test_udp_queues_are_held_by_the_limit(small: Sandbox) -> None:
    caller = small.process()
    for number in range(200):
        receiver(caller, 6000 + number)
    sender = caller.ok("socket", AF_INET, DATAGRAM, 0)
    results = {
        send(caller, sender, b"x" * 1000, inet(caller, 6000 + number % 200))
        for number in range(20_000)
    }
    assert results == {1000, -Errno.ENOBUFS}
    assert small.kernel.ledger.used <= 4 * MIB + KERNEL_UNCHARGED_MAX


def test_data_that_was_read_is_freed_even_if_a_byte_is_left(
    sandbox: Sandbox, caller: Caller
) -> None:
    """One byte that is left does not keep the 64 KiB that came with it."""
    tracemalloc.start()
    try:
        pipes = [caller.pipe() for _ in range(100)]
        first, *_ = tracemalloc.get_traced_memory()
        for source, sink in pipes:
            caller.write(sink, b"x" * 65_536)
            caller.ok("read", source, caller.room(65_535), 65_535)
        left = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    assert kernel_bytes(sandbox)[1] == 100
    assert left < 100 * 8192


# Numbers of objects.


@pytest.fixture
def wide() -> Caller:
    """A process that may open very many files."""
    return Sandbox(Limits(max_open_files=40_000)).process()


def test_sockets_are_counted_even_if_nobody_accepts_them(wide: Caller) -> None:
    listener(wide, 5000, backlog=BACKLOG_MAX)
    for _ in range(BACKLOG_MAX):
        wide.ok("close", connection(wide, 5000))
    for _ in range(SOCKETS_MAX - BACKLOG_MAX - 1):
        wide.ok("socket", AF_UNIX, STREAM, 0)
    assert wide.errno("socket", AF_UNIX, STREAM, 0) is Errno.ENFILE
    wide.ok("close", 0)
    for _ in range(BACKLOG_MAX):
        wide.ok("socket", AF_UNIX, STREAM, 0)


def test_clients_that_wait_for_a_full_listener_are_bounded(wide: Caller) -> None:
    listening = listener(wide, 5000, backlog=0)

    def knock() -> int:
        fd = wide.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
        assert wide.errno("connect", fd, *inet(wide, 5000)) is Errno.EINPROGRESS
        return fd

    knock()
    outside = [knock() for _ in range(BACKLOG_MAX)]
    late = knock()
    assert wide.errno("connect", late, *inet(wide, 5000)) is Errno.ETIMEDOUT
    for fd in outside[:-1]:
        wide.ok("close", fd)  # they are forgotten
    wide.ok("accept4", listening, 0, 0, NONBLOCK)
    wide.ok("connect", outside[-1], *inet(wide, 5000))
    wide.ok("accept4", listening, 0, 0, NONBLOCK)
    wide.ok("fcntl64", listening, 4, NONBLOCK)
    assert wide.errno("accept4", listening, 0, 0, 0) is Errno.EAGAIN


def test_sockets_that_share_a_port_are_bounded(wide: Caller) -> None:
    for _ in range(PORT_HOLDERS_MAX):
        fd = wide.ok("socket", AF_INET, DATAGRAM, 0)
        wide.ok("setsockopt", fd, 1, 15, wide.pack("I", 1), 4)  # SO_REUSEPORT
        wide.ok("bind", fd, *inet(wide, 6000))
    fd = wide.ok("socket", AF_INET, DATAGRAM, 0)
    wide.ok("setsockopt", fd, 1, 15, wide.pack("I", 1), 4)
    assert wide.errno("bind", fd, *inet(wide, 6000)) is Errno.EADDRINUSE
    wide.ok("close", 0)
    wide.ok("bind", fd, *inet(wide, 6000))


def test_a_port_is_in_use_while_connections_at_it_are(caller: Caller) -> None:
    listening = listener(caller, 5000)
    client = connection(caller, 5000)
    accepted = caller.ok("accept4", listening, 0, 0, 0)
    caller.ok("close", listening)
    other = caller.ok("socket", AF_INET, STREAM, 0)
    assert caller.errno("bind", other, *inet(caller, 5000)) is Errno.EADDRINUSE
    caller.ok("close", accepted)
    caller.ok("bind", other, *inet(caller, 5000))
    caller.ok("close", client)


# Descriptors in flight.


def test_a_chain_of_sockets_in_messages_is_closed_without_recursion(sandbox: Sandbox) -> None:
    before = kernel_bytes(sandbox)
    caller = sandbox.process()
    one, two = pair(caller)
    for _ in range(RIGHTS_IN_FLIGHT_MAX - 1):
        three, four = pair(caller)
        assert send_fds(caller, three, two) == 1
        caller.ok("close", one)
        caller.ok("close", two)
        one, two = three, four
    assert sandbox.kernel.network.rights.in_flight == RIGHTS_IN_FLIGHT_MAX - 1
    caller.ok("close", two)
    assert sandbox.kernel.network.rights.in_flight == 0
    caller.exit()
    assert kernel_bytes(sandbox) == before


def test_sockets_that_only_messages_keep_are_closed_when_more_are_sent(
    sandbox: Sandbox, caller: Caller
) -> None:
    for _ in range(3 * RIGHTS_IN_FLIGHT_MAX):
        one, two = pair(caller)
        assert send_fds(caller, one, two) == 1
        caller.ok("close", one)
        caller.ok("close", two)
    assert sandbox.kernel.network.rights.in_flight <= RIGHTS_IN_FLIGHT_MAX


def test_sockets_in_messages_that_can_be_received_stay_open(
    sandbox: Sandbox, caller: Caller
) -> None:
    """Through a listener in flight, and through one of its connections that was not accepted."""
    server = caller.ok("socket", AF_UNIX, STREAM, 0)
    caller.ok("bind", server, *unix(caller, b"\0name"))
    caller.ok("listen", server, 4)
    client = caller.ok("socket", AF_UNIX, STREAM, 0)
    caller.ok("connect", client, *unix(caller, b"\0name"))
    source, sink = caller.pipe()
    assert send_fds(caller, client, source) == 1
    caller.write(sink, b"still here")
    one, two = pair(caller)
    assert send_fds(caller, one, server) == 1
    for fd in (source, server, client):
        caller.ok("close", fd)
    with sandbox.lock:
        sandbox.kernel.network.rights.collect()
    assert sandbox.kernel.network.rights.in_flight == 2
    server = receive_fd(caller, two)
    accepted = caller.ok("accept4", server, 0, 0, 0)
    with sandbox.lock:
        sandbox.kernel.network.rights.collect()
    assert caller.read(receive_fd(caller, accepted)) == b"still here"
    assert sandbox.kernel.network.rights.in_flight == 0


def receive_fd(caller: Caller, by: int) -> int:
    control = caller.room(16)
    vectors = caller.vectors((caller.room(1), 1))
    caller.ok("recvmsg", by, caller.pack("7I", 0, 0, vectors, 1, control, 16, 0), 0)
    fd: int = caller.unpack("4I", control)[3]
    return fd
