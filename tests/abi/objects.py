"""Kernel objects of every kind that a guest can make, created by system calls."""

from __future__ import annotations

from collections.abc import Callable

from tests.abi.caller import Caller
from wasmsand.kernel.sockets import options

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
STREAM, DATAGRAM, RAW, NONBLOCK = 1, 2, 3, 0o4000
LOCALHOST = b"\x7f\0\0\1"


def inet(caller: Caller, port: int, host: bytes = LOCALHOST) -> tuple[int, int]:
    """(address, length) of an Internet socket name."""
    return caller.put(b"\2\0" + port.to_bytes(2, "big") + host + bytes(8)), 16


def inet6(caller: Caller, port: int) -> tuple[int, int]:
    host = bytes(15) + b"\1"
    return caller.put(b"\n\0" + port.to_bytes(2, "big") + bytes(4) + host + bytes(4)), 28


def unix(caller: Caller, name: bytes) -> tuple[int, int]:
    return caller.put(b"\1\0" + name), 2 + len(name)


def listener(caller: Caller, port: int, backlog: int = 4096) -> int:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    caller.ok("bind", fd, *inet(caller, port))
    caller.ok("listen", fd, backlog)
    return fd


def connection(caller: Caller, port: int) -> int:
    fd = caller.ok("socket", AF_INET, STREAM, 0)
    caller.ok("connect", fd, *inet(caller, port))
    return fd


def receiver(caller: Caller, port: int, family: int = AF_INET) -> int:
    fd = caller.ok("socket", family, DATAGRAM, 0)
    caller.ok("bind", fd, *(inet if family == AF_INET else inet6)(caller, port))
    return fd


def pair(caller: Caller, kind: int = STREAM) -> tuple[int, int]:
    at = caller.room(8)
    caller.ok("socketpair", AF_UNIX, kind, 0, at)
    one, two = caller.unpack("II", at)
    return one, two


def send(caller: Caller, fd: int, data: bytes, to: tuple[int, int] = (0, 0)) -> int:
    return caller.call("sendto", fd, caller.put(data), len(data), 0x40, *to)


def send_fds(caller: Caller, by: int, *fds: int) -> int:
    control = caller.pack(f"Iii{len(fds)}I", 12 + 4 * len(fds), 1, 1, *fds)
    vectors = caller.vectors((caller.put(b"x"), 1))
    header = caller.pack("7I", 0, 0, vectors, 1, control, 12 + 4 * len(fds), 0)
    return caller.call("sendmsg", by, header, 0x40)


def record_lock(caller: Caller, fd: int, start: int, length: int = 1) -> int:
    return caller.call("fcntl64", fd, 13, caller.pack("hh4xqqi4x", 1, 0, start, length, 0))


def watch(caller: Caller, epoll: int, fd: int, events: int = 1) -> int:
    return caller.call("epoll_ctl", epoll, 1, fd, caller.pack("I4xQ", events, 1 << 40))


def timer(caller: Caller, seconds: int = 1000) -> int:
    fd = caller.ok("timerfd_create", 1, 0)
    caller.ok("timerfd_settime64", fd, 0, caller.pack("4q", 0, 0, seconds, 0), 0)
    return fd


def all_options(caller: Caller, fd: int) -> None:
    for level, name in options.DEFAULTS:
        caller.call("setsockopt", fd, level, name, caller.pack("i", 123_456), 4)


def one_of_each(caller: Caller) -> None:
    """Make one object of each kind, with data in everything that can hold data."""
    source, sink = caller.pipe()
    caller.write(sink, b"x" * 10_000)
    caller.read(source, 9_999)
    file = caller.open(b"/tmp/file", 0o102)
    caller.open(b"/tmp", 0)
    caller.open(b"/dev/null", 2)
    caller.ok("dup", file)
    caller.ok("flock", file, 2)
    assert record_lock(caller, file, 0) == record_lock(caller, file, 10) == 0
    caller.ok("memfd_create", b"memory", 0)
    _events(caller, source)
    _sockets(caller)
    _rights(caller)
    master = caller.open(b"/dev/ptmx", 2)
    caller.ok("ioctl", master, 0x4004_5431, caller.pack("I", 0))  # TIOCSPTLCK
    number = caller.room(4)
    caller.ok("ioctl", master, 0x8004_5430, number)  # TIOCGPTN
    slave = caller.open(b"/dev/pts/%d" % caller.unpack("I", number)[0], 0o402)
    caller.write(slave, b"shown")
    caller.write(master, b"typed\n")
    _fifos(caller)
    child = caller.fork()
    caller.ok("pidfd_open", child.process.pid, 0)


def _events(caller: Caller, source: int) -> None:
    epoll, outer = caller.ok("epoll_create1", 0), caller.ok("epoll_create1", 0)
    signals = caller.ok("signalfd4", -1, caller.pack("Q", 1), 8, 0)
    count = caller.ok("eventfd2", 1, 0)
    for fd in (source, timer(caller), signals, count):
        assert watch(caller, epoll, fd) == 0
    assert watch(caller, outer, epoll) == 0
    caller.ok("close", count)


def _sockets(caller: Caller) -> None:
    listening = listener(caller, 5000, backlog=1)
    for _ in range(3):  # the first two are connected, the last one waits
        client = caller.ok("socket", AF_INET, STREAM | NONBLOCK, 0)
        caller.call("connect", client, *inet(caller, 5000))
    send(caller, client - 1, b"never read")
    caller.ok("close", client - 2)
    caller.ok("accept4", listening, 0, 0, 0)
    server = caller.ok("socket", AF_UNIX, STREAM, 0)
    caller.ok("bind", server, *unix(caller, b"/tmp/socket"))
    caller.ok("listen", server, 4)
    client = caller.ok("socket", AF_UNIX, STREAM, 0)
    caller.ok("connect", client, *unix(caller, b"/tmp/socket"))
    assert send(caller, client, b"never accepted") > 0
    named = caller.ok("socket", AF_UNIX, DATAGRAM, 0)
    caller.ok("bind", named, *unix(caller, b"\0abstract"))
    assert send(caller, pair(caller, DATAGRAM)[0], b"message") == 7
    for family, name in ((AF_INET, inet), (AF_INET6, inet6)):
        udp = receiver(caller, 6000, family)
        all_options(caller, udp)
        assert send(caller, udp, b"datagram", name(caller, 6000)) == 8
    one, two = pair(caller)
    assert send(caller, one, b"y" * 60_000) == 60_000
    caller.ok("recvfrom", two, caller.room(50_000), 50_000, 2, 0, 0)  # MSG_PEEK
    listener(caller, 5001)
    tcp = connection(caller, 5001)
    caller.call("sendto", tcp, caller.put(b"urgent"), 6, 1, 0, 0)
    netlink = caller.ok("socket", AF_NETLINK, RAW, 0)
    assert send(caller, netlink, b"\x14\0\0\0\x16\0\x01\x03" + bytes(12)) > 0


def _rights(caller: Caller) -> None:
    """Descriptors in flight: sockets in messages to themselves and to each other."""
    for kind in (STREAM, DATAGRAM):
        one, two = pair(caller, kind)
        assert send_fds(caller, one, two, one, caller.pipe()[0]) == 1
        three, four = pair(caller, kind)
        five, six = pair(caller, kind)
        assert send_fds(caller, three, six) == send_fds(caller, five, four) == 1
        for fd in (one, two, three, four, five, six):
            caller.ok("close", fd)


def _fifos(caller: Caller) -> None:
    caller.ok("mknodat", -100, b"/tmp/fifo", 0o010644, 0)
    fifo = caller.open(b"/tmp/fifo", 0o4002)
    caller.write(fifo, b"in a fifo")


KINDS: dict[str, Callable[[Caller, int], object]] = {
    "a file": lambda c, i: c.open(b"/tmp/file", 0o102),
    "a further fd": lambda c, i: c.ok("dup", 0),
    "a pipe": lambda c, i: c.pipe(),
    "an eventfd": lambda c, i: c.ok("eventfd2", 0, 0),
    "an armed timerfd": lambda c, i: timer(c, 1000 + i),
    "an epoll file": lambda c, i: c.ok("epoll_create1", 0),
    "a bound UDP socket": lambda c, i: receiver(c, 0),
    "a Unix socket with a name": lambda c, i: c.ok(
        "bind", c.ok("socket", AF_UNIX, DATAGRAM, 0), *unix(c, b"\0%0107d" % i)
    ),
    "a pair of stream sockets": lambda c, i: pair(c),
    "a pair of datagram sockets": lambda c, i: pair(c, DATAGRAM),
    "a connection that nobody accepted": lambda c, i: connection(c, 5000),
    "one whose client is gone": lambda c, i: c.ok("close", connection(c, 5000)),
    "a socket with all options": lambda c, i: all_options(c, c.ok("socket", AF_INET, STREAM, 0)),
    "a datagram": lambda c, i: send(c, 5, b"x", inet(c, 7000 + i % 64)),
    "a datagram of IPv6": lambda c, i: send(c, 6, b"x", inet6(c, 7000 + i % 64)),
    "a message with a descriptor": lambda c, i: send_fds(c, 7 + 2 * (i % 64), 1),
    "a watch": lambda c, i: watch(c, 4, c.ok("dup", 2), 4),
    "an epoll file and a watch": lambda c, i: watch(c, c.ok("epoll_create1", 0), 2, 4),
    "a record lock": lambda c, i: record_lock(c, 0, 2 * i),
    "a flock": lambda c, i: c.ok("flock", c.open(b"/tmp/file", 0o102), 1),
    "a pidfd of a process that is gone": lambda c, i: _gone(c),
}
"""Functions that make one more object of each kind, in a process set up by `prepare`."""


def prepare(caller: Caller) -> None:
    """Open a file (fd 0), a pipe (1 and 2), a listener at port 5000 (3), an epoll (4), UDP sockets
    (5 and 6) and pairs of datagram sockets (from 7 on); receivers are at ports from 7000 on."""
    caller.open(b"/tmp/file", 0o102)
    caller.pipe()
    listener(caller, 5000)
    caller.ok("epoll_create1", 0)
    caller.ok("socket", AF_INET, DATAGRAM, 0)
    caller.ok("socket", AF_INET6, DATAGRAM, 0)
    for _ in range(64):
        pair(caller, DATAGRAM)
    for port in range(7000, 7064):
        receiver(caller, port)
        fd = caller.ok("socket", AF_INET6, DATAGRAM, 0)
        caller.ok("setsockopt", fd, 41, 26, caller.pack("I", 1), 4)  # IPV6_V6ONLY
        caller.ok("bind", fd, *inet6(caller, port))


def _gone(caller: Caller) -> None:
    child = caller.fork()
    caller.ok("pidfd_open", child.process.pid, 0)
    child.exit()
    caller.ok("wait4", child.process.pid, 0, 0, 0)
