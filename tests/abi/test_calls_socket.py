"""Sockets: what each call refuses, and what the C program in the libc's tests cannot see."""

from __future__ import annotations

from struct import pack

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLERR, POLLHUP, POLLIN, POLLPRI
from wasmsand.kernel.limits import PIPE_CAPACITY, RIGHTS_IN_FLIGHT_MAX

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
STREAM, DATAGRAM, RAW, SEQPACKET = 1, 2, 3, 5
CLOEXEC, NONBLOCK = 0o2000000, 0o4000
DONTWAIT, NOSIGNAL = 0x40, 0x4000
OOB, PEEK, CTRUNC = 0x1, 0x2, 0x8
IPV6 = 41
SOL_SOCKET = 1
OOBINLINE, LINGER = 10, 13
SIOCATMARK = 0x8905


def inet(port: int, host: bytes = b"\x7f\0\0\1") -> bytes:
    return pack("<H", AF_INET) + port.to_bytes(2, "big") + host + bytes(8)


def unix(name: bytes) -> bytes:
    return pack("<H", AF_UNIX) + name


def pair(caller: Caller, kind: int = STREAM) -> tuple[int, int]:
    at = caller.room(8)
    caller.ok("socketpair", AF_UNIX, kind, 0, at)
    one, two = caller.unpack("II", at)
    return one, two


def bind(caller: Caller, fd: int, name: bytes) -> None:
    caller.ok("bind", fd, caller.put(name), len(name))


def connect(caller: Caller, fd: int, name: bytes) -> int:
    return caller.call("connect", fd, caller.put(name), len(name))


def listener(caller: Caller, port: int, backlog: int = 4) -> int:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    bind(caller, fd, inet(port))
    caller.ok("listen", fd, backlog)
    return fd


@pytest.mark.syscalls("socket")
@pytest.mark.parametrize(
    ("domain", "kind", "protocol", "error"),
    [
        (AF_NETLINK, STREAM, 0, Errno.ESOCKTNOSUPPORT),
        (AF_NETLINK, RAW, 1, Errno.EPROTONOSUPPORT),
        (0xFFFF_FFFF, STREAM, 0, Errno.EAFNOSUPPORT),
        (AF_INET, RAW, 0, Errno.ESOCKTNOSUPPORT),
        (AF_INET, STREAM, 17, Errno.EPROTONOSUPPORT),
        (AF_UNIX, STREAM | 0x100000, 0, Errno.EINVAL),
    ],
)
def test_an_unsupported_kind_of_socket_is_refused(
    caller: Caller, domain: int, kind: int, protocol: int, error: Errno
) -> None:
    assert caller.errno("socket", domain, kind, protocol) is error


@pytest.mark.syscalls("bind", "listen", "connect", "sendto", "recvfrom", "shutdown", "accept",
                      "accept4", "getsockname", "getpeername", "setsockopt", "getsockopt",
                      "sendmsg", "recvmsg")  # fmt: skip
def test_socket_calls_on_a_file_are_refused(caller: Caller) -> None:
    fd = caller.pipe()[0]
    at = caller.room(64)
    for name in ("bind", "listen", "connect", "sendto", "recvfrom", "shutdown", "accept", "accept4",
                 "getsockname", "getpeername", "setsockopt", "getsockopt", "sendmsg",
                 "recvmsg"):  # fmt: skip
        assert caller.errno(name, fd, at, 16, 0) is Errno.ENOTSOCK, name
        assert caller.errno(name, 99, at, 16, 0) is Errno.EBADF, name


@pytest.mark.syscalls("connect")
def test_addresses_outside_the_sandbox_cannot_be_reached(caller: Caller) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    assert -connect(caller, fd, inet(80, b"\x08\x08\x08\x08")) == Errno.ENETUNREACH


@pytest.mark.syscalls("bind")
def test_low_ports_need_root_and_foreign_addresses_cannot_be_bound(
    caller: Caller, root: Caller
) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    name = inet(80)
    assert caller.errno("bind", fd, caller.put(name), len(name)) is Errno.EACCES
    name = inet(8080, b"\x08\x08\x08\x08")
    assert caller.errno("bind", fd, caller.put(name), len(name)) is Errno.EADDRNOTAVAIL
    bind(root, root.ok("socket", AF_INET, STREAM, 0), inet(80))


@pytest.mark.syscalls("bind")
@pytest.mark.parametrize("length", [0, 1, 129, 0xFFFF_FFFF])
def test_a_name_of_an_impossible_length_is_refused(caller: Caller, length: int) -> None:
    fd = caller.ok("socket", AF_UNIX, STREAM, 0)
    assert caller.errno("bind", fd, caller.room(200), length) is Errno.EINVAL


@pytest.mark.syscalls("bind", "connect")
def test_a_unix_socket_needs_the_right_to_write_its_inode(sandbox: Sandbox, root: Caller) -> None:
    fd = root.ok("socket", AF_UNIX, STREAM, 0)
    root.ok("umask", 0o077)
    bind(root, fd, unix(b"/tmp/root.sock"))
    root.ok("listen", fd, 1)
    user = sandbox.process()
    other = user.ok("socket", AF_UNIX, STREAM, 0)
    assert -connect(user, other, unix(b"/tmp/root.sock")) == Errno.EACCES


@pytest.mark.syscalls("accept4", "connect")
def test_accept_waits_for_a_connection(sandbox: Sandbox, caller: Caller) -> None:
    fd = listener(caller, 9000)
    waiting = caller.begin("accept4", fd, 0, 0, CLOEXEC)
    assert waiting.is_blocked()
    client = sandbox.process()
    assert connect(client, client.ok("socket", AF_INET, STREAM, 0), inet(9000)) == 0
    accepted = waiting.result()
    assert caller.ok("fcntl64", accepted, 1, 0) == 1


@pytest.mark.syscalls("connect", "accept")
def test_connections_beyond_the_backlog_wait(sandbox: Sandbox, caller: Caller) -> None:
    fd = listener(caller, 9001, backlog=0)
    first = sandbox.process()
    assert connect(first, first.ok("socket", AF_INET, STREAM, 0), inet(9001)) == 0
    second = sandbox.process()
    sock = second.ok("socket", AF_INET, STREAM, 0)
    name = inet(9001)
    waiting = second.begin("connect", sock, second.put(name), len(name))
    assert waiting.is_blocked()
    caller.ok("accept", fd, 0, 0)
    assert waiting.result() == 0
    third = sandbox.process()
    sock = third.ok("socket", AF_INET, STREAM, 0)
    waiting = third.begin("connect", sock, third.put(name), len(name))
    assert waiting.is_blocked()
    caller.ok("close", fd)
    assert -waiting.result() == Errno.ECONNREFUSED


@pytest.mark.syscalls("sendto", "recvfrom")
def test_a_sender_waits_while_the_connection_is_full(sandbox: Sandbox, caller: Caller) -> None:
    one, two = pair(caller)
    data = caller.room(PIPE_CAPACITY + 1000)
    sending = caller.begin("sendto", one, data, PIPE_CAPACITY + 1000, 0, 0, 0)
    assert sending.is_blocked()
    reader = caller.fork()
    got = reader.room(5000)
    assert reader.ok("recvfrom", two, got, 5000, 0, 0, 0) == 5000
    assert sending.result() == PIPE_CAPACITY + 1000
    room = 5000 - 1000
    assert caller.ok("sendto", one, data, PIPE_CAPACITY, DONTWAIT, 0, 0) == room
    assert caller.errno("sendto", one, data, 1, DONTWAIT, 0, 0) is Errno.EAGAIN


@pytest.mark.syscalls("getpeername", "shutdown", "recvfrom", "sendto")
def test_a_reset_connection_has_no_peer_but_keeps_received_data(caller: Caller) -> None:
    waiting = listener(caller, 7003)
    other = caller.ok("socket", AF_INET, STREAM, 0)
    assert connect(caller, other, inet(7003)) == 0
    fd = caller.ok("accept4", waiting, 0, 0, NONBLOCK)
    caller.ok("setsockopt", other, SOL_SOCKET, LINGER, caller.pack("II", 1, 0), 8)
    caller.write(other, b"arrived")
    caller.ok("close", other)
    room = caller.room(32)
    assert polled(caller, fd) == POLLIN | POLLERR | POLLHUP
    assert caller.errno("getpeername", fd, room, caller.pack("I", 16)) is Errno.ENOTCONN
    assert receive(caller, fd) == b"arrived"
    assert caller.errno("recvfrom", fd, room, 1, 0, 0, 0) is Errno.ECONNRESET
    assert receive(caller, fd) == b""
    assert caller.errno("sendto", fd, room, 1, NOSIGNAL, 0, 0) is Errno.EPIPE
    assert caller.errno("shutdown", fd, 2) is Errno.ENOTCONN


def test_writing_fails_only_after_data_was_sent_to_a_closed_peer(caller: Caller) -> None:
    waiting = listener(caller, 7004)
    other = caller.ok("socket", AF_INET, STREAM, 0)
    assert connect(caller, other, inet(7004)) == 0
    fd = caller.ok("accept4", waiting, 0, 0, NONBLOCK)
    caller.ok("close", other)
    for _ in range(2):  # nothing is sent, so nothing is answered
        assert caller.ok("sendto", fd, caller.room(1), 0, NOSIGNAL, 0, 0) == 0
    assert caller.write(fd, b"lost") == 4
    assert receive(caller, fd) == b""
    assert caller.errno("sendto", fd, caller.room(1), 1, NOSIGNAL, 0, 0) is Errno.EPIPE


def urgent_connection(caller: Caller, *, inline: bool) -> tuple[int, int]:
    waiting = listener(caller, 7001)
    sender = caller.ok("socket", AF_INET, STREAM, 0)
    assert connect(caller, sender, inet(7001)) == 0
    receiver = caller.ok("accept4", waiting, 0, 0, NONBLOCK)
    caller.ok("setsockopt", receiver, SOL_SOCKET, OOBINLINE, caller.pack("I", inline), 4)
    return sender, receiver


def at_mark(caller: Caller, fd: int) -> bool:
    at = caller.room(4)
    caller.ok("ioctl", fd, SIOCATMARK, at)
    return bool(caller.unpack("I", at)[0])


def polled(caller: Caller, fd: int) -> int:
    at = caller.pack("IHH", fd, POLLIN | POLLPRI, 0)
    caller.ok("ppoll_time64", at, 1, caller.pack("qq", 0, 0), 0, 0)
    bits: int = caller.unpack("IHH", at)[2]
    return bits


def receive(caller: Caller, fd: int, flags: int = 0) -> bytes:
    at = caller.room(64)
    return caller.get(at, caller.ok("recvfrom", fd, at, 64, flags, 0, 0))


@pytest.mark.syscalls("sendto", "recvfrom", "ioctl")
def test_a_read_stops_before_an_urgent_byte_which_is_read_separately(caller: Caller) -> None:
    sender, receiver = urgent_connection(caller, inline=False)
    assert caller.errno("recvfrom", receiver, caller.room(1), 1, OOB, 0, 0) is Errno.EINVAL
    assert caller.ok("sendto", sender, caller.put(b"before!"), 7, OOB, 0, 0) == 7
    caller.write(sender, b"after")
    assert polled(caller, receiver) == POLLIN | POLLPRI
    assert receive(caller, receiver) == b"before"
    assert at_mark(caller, receiver)
    assert receive(caller, receiver, OOB | PEEK) == receive(caller, receiver, OOB) == b"!"
    assert caller.errno("recvfrom", receiver, caller.room(1), 1, OOB, 0, 0) is Errno.EINVAL
    assert polled(caller, receiver) == POLLIN
    assert receive(caller, receiver) == b"after"
    assert not at_mark(caller, receiver)
    assert caller.ok("sendto", sender, caller.put(b"!"), 1, OOB, 0, 0) == 1
    assert polled(caller, receiver) == POLLPRI


@pytest.mark.syscalls("sendto", "recvfrom", "ioctl")
def test_an_urgent_byte_stays_in_the_stream_if_the_reader_asks_for_it(caller: Caller) -> None:
    sender, receiver = urgent_connection(caller, inline=True)
    assert caller.ok("sendto", sender, caller.put(b"before!"), 7, OOB, 0, 0) == 7
    caller.write(sender, b"after")
    assert caller.errno("recvfrom", receiver, caller.room(1), 1, OOB, 0, 0) is Errno.EINVAL
    assert receive(caller, receiver) == b"before"
    assert at_mark(caller, receiver)
    assert polled(caller, receiver) == POLLIN | POLLPRI
    assert receive(caller, receiver) == b"!after"
    assert polled(caller, receiver) == 0


def test_only_tcp_has_urgent_data(caller: Caller) -> None:
    for kind in (STREAM, DATAGRAM):
        one, _ = pair(caller, kind)
        assert caller.errno("sendto", one, caller.put(b"x"), 1, OOB, 0, 0) is Errno.EOPNOTSUPP


@pytest.mark.syscalls("sendmsg")
def test_descriptors_in_flight_are_counted(caller: Caller) -> None:
    one, _ = pair(caller)
    vector = caller.vectors((caller.put(b"x"), 1))
    control = caller.pack("Iii50i", 12 + 200, SOL_SOCKET, 1, *([one] * 50))
    header = caller.pack("7I", 0, 0, vector, 1, control, 212, 0)
    for _ in range(RIGHTS_IN_FLIGHT_MAX // 50):
        caller.ok("sendmsg", one, header, 0)
    assert caller.errno("sendmsg", one, header, 0) is Errno.ETOOMANYREFS


@pytest.mark.syscalls("recvmsg", "sendmsg")
def test_descriptors_that_do_not_fit_are_closed_and_reported(caller: Caller) -> None:
    one, two = pair(caller)
    source, sink = caller.pipe()
    vector = caller.vectors((caller.put(b"x"), 1))
    control = caller.pack("Iii2i", 20, SOL_SOCKET, 1, sink, sink)
    caller.ok("sendmsg", one, caller.pack("7I", 0, 0, vector, 1, control, 20, 0), 0)
    caller.ok("close", sink)
    header = caller.pack("7I", 0, 0, vector, 1, caller.room(16), 16, 0)
    assert caller.ok("recvmsg", two, header, 0) == 1
    *_, control, used, flags = caller.unpack("7I", header)
    assert (used, flags) == (16, 8)  # one descriptor, MSG_CTRUNC
    caller.ok("close", caller.unpack("Iiii", control)[3])
    assert caller.read(source) == b""  # the other one was closed


@pytest.mark.syscalls("sendmsg")
@pytest.mark.parametrize("size", [0, 11, 0x7FFF_FFFF, 0xFFFF_FFFF])
def test_control_messages_of_a_wrong_size_are_refused(caller: Caller, size: int) -> None:
    one, _ = pair(caller)
    vector = caller.vectors((caller.put(b"x"), 1))
    control = caller.pack("III", size, SOL_SOCKET, 1)
    header = caller.pack("7I", 0, 0, vector, 1, control, 12, 0)
    assert caller.errno("sendmsg", one, header, 0) is Errno.EINVAL


HOP_LIMIT, TRAFFIC_CLASS = (IPV6, 52), (IPV6, 67)


def note(kind: tuple[int, int], value: int, size: int = 16) -> bytes:
    return pack("<Iiii", size, *kind, value)[:size]


def six(caller: Caller) -> tuple[int, int]:
    """A UDP socket that sends to another one, which asks for header fields."""
    receiver = caller.ok("socket", AF_INET6, DATAGRAM, 0)
    name = pack("<HHI16sI", AF_INET6, 7002 >> 8 | (7002 & 255) << 8, 0, bytes(15) + b"\x01", 0)
    bind(caller, receiver, name)
    for option in (51, 66):
        caller.ok("setsockopt", receiver, IPV6, option, caller.pack("I", 1), 4)
    sender = caller.ok("socket", AF_INET6, DATAGRAM, 0)
    assert connect(caller, sender, name) == 0
    return sender, receiver


def send_with(caller: Caller, fd: int, control: bytes) -> int:
    vector = caller.vectors((caller.put(b"hi"), 2))
    at = caller.put(control)
    return caller.call("sendmsg", fd, caller.pack("7I", 0, 0, vector, 1, at, len(control), 0), 0)


def received_with(caller: Caller, fd: int, room: int) -> tuple[bytes, int]:
    """The control data of the next message, and the flags that recvmsg reports."""
    vector, at = caller.vectors((caller.room(8), 8)), caller.room(64)
    header = caller.pack("7I", 0, 0, vector, 1, at, room, 0)
    assert caller.ok("recvmsg", fd, header, 0) == 2
    _, _, _, _, _, length, flags = caller.unpack("7I", header)
    return caller.get(at, length), flags


@pytest.mark.syscalls("sendmsg", "recvmsg")
def test_fields_of_the_ipv6_header_are_reported_on_request(caller: Caller) -> None:
    sender, receiver = six(caller)
    caller.write(sender, b"hi")
    usual = note(HOP_LIMIT, 64) + note(TRAFFIC_CLASS, 0)
    assert received_with(caller, receiver, 64) == (usual, 0)
    assert send_with(caller, sender, note(TRAFFIC_CLASS, 7) + note(HOP_LIMIT, 1)) == 2
    told = note(HOP_LIMIT, 1) + note(TRAFFIC_CLASS, 7)
    assert received_with(caller, receiver, 64) == (told, 0)


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (0, b""),
        (11, b""),
        (14, note(HOP_LIMIT, 64, 14)),
        (27, note(HOP_LIMIT, 64)),
        (30, note(HOP_LIMIT, 64) + note(TRAFFIC_CLASS, 0, 14)),
    ],
)
def test_control_messages_are_truncated_to_the_buffer(
    caller: Caller, room: int, told: bytes
) -> None:
    sender, receiver = six(caller)
    caller.write(sender, b"hi")
    assert received_with(caller, receiver, room) == (told, CTRUNC)


@pytest.mark.parametrize(
    "control",
    [note(HOP_LIMIT, 256), note(HOP_LIMIT, -2), note(HOP_LIMIT, 1, 15), note((IPV6, 99), 1)],
)
def test_impossible_headers_are_refused(caller: Caller, control: bytes) -> None:
    sender, _ = six(caller)
    assert send_with(caller, sender, control) == -Errno.EINVAL


@pytest.mark.syscalls("getsockopt", "setsockopt")
def test_options_are_kept_and_unknown_ones_refused(caller: Caller) -> None:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    length, value = caller.pack("I", 4), caller.room(4)
    caller.ok("setsockopt", fd, SOL_SOCKET, 8, caller.pack("i", 10_000), 4)
    caller.ok("getsockopt", fd, SOL_SOCKET, 8, value, length)
    assert caller.unpack("i", value) == (20_000,)
    assert caller.errno("getsockopt", fd, SOL_SOCKET, 999, value, length) is Errno.ENOPROTOOPT
    assert caller.errno("setsockopt", fd, SOL_SOCKET, 2, value, 3) is Errno.EINVAL
    negative = caller.pack("i", -1)
    assert caller.errno("getsockopt", fd, SOL_SOCKET, 2, value, negative) is Errno.EINVAL


@pytest.mark.syscalls("getsockname", "getpeername")
def test_socket_names_are_truncated_and_report_their_length(caller: Caller) -> None:
    fd = caller.ok("socket", AF_UNIX, STREAM, 0)
    bind(caller, fd, unix(b"/tmp/name"))
    at, length = caller.room(16, fill=255), caller.pack("I", 4)
    caller.ok("getsockname", fd, at, length)
    assert caller.unpack("I", length) == (2 + 10,)
    assert caller.get(at, 6) == unix(b"/t") + b"\xff\xff"
    assert caller.errno("getpeername", fd, at, length) is Errno.ENOTCONN


@pytest.mark.syscalls("socketpair", "shutdown")
def test_a_killed_process_ends_its_connections(sandbox: Sandbox, caller: Caller) -> None:
    one, two = pair(caller)
    child = caller.fork()
    caller.ok("close", two)
    child.ok("close", one)
    waiting = caller.begin("read", one, caller.room(8), 8)
    assert waiting.is_blocked()
    child.exit()
    assert waiting.result() == 0
    assert caller.errno("shutdown", one, 3) is Errno.EINVAL


@pytest.mark.syscalls("socket")
def test_ports_and_names_are_free_again_when_their_sockets_are_closed(
    sandbox: Sandbox, caller: Caller
) -> None:
    for _ in range(3):
        fd = listener(caller, 9002)
        client = caller.ok("socket", AF_INET, STREAM, 0)
        assert connect(caller, client, inet(9002)) == 0
        for each in (fd, client):
            caller.ok("close", each)
        name = caller.ok("socket", AF_UNIX, DATAGRAM, 0)
        bind(caller, name, unix(b"\0abstract"))
        caller.ok("close", name)
    network = sandbox.kernel.network
    assert (network.abstract, network.by_node, network.tcp._bound) == ({}, {}, {})
    assert sandbox.kernel.pipes.in_use == 0
