"""What a guest learns about network interfaces: by netlink, as getifaddrs does, and by ioctl."""

from __future__ import annotations

from struct import calcsize, pack, unpack_from

import pytest

from tests.abi.caller import Caller
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import SOCKET_QUEUE_BYTES

AF_INET, AF_INET6, AF_NETLINK = 2, 10, 16
DATAGRAM, RAW = 2, 3
DONTWAIT = 0x40
REQUEST, LIST = 0x1, 0x301
ERROR, DONE, NEW_LINK, GET_LINK, NEW_ADDRESS, GET_ADDRESS, GET_ROUTE = 2, 3, 16, 18, 20, 22, 26
SIOCGIFNAME, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFADDR = 0x8910, 0x8912, 0x8913, 0x8915
SIOCGIFNETMASK, SIOCGIFMTU, SIOCGIFINDEX = 0x891B, 0x8921, 0x8933

Answer = tuple[int, bytes]


def request(kind: int, flags: int = LIST, family: int = 0) -> bytes:
    return pack("<IHHIIB3x", 20, kind, flags, 7, 0, family)


def netlink(caller: Caller, kind: int = RAW) -> int:
    return caller.ok("socket", AF_NETLINK, kind, 0)


def ask(caller: Caller, fd: int, question: bytes) -> list[Answer]:
    caller.ok("sendto", fd, caller.put(question), len(question), 0, 0, 0)
    at = caller.room(4096)
    raw = caller.get(at, caller.ok("recvfrom", fd, at, 4096, DONTWAIT, 0, 0))
    answers = []
    place = 0
    while place < len(raw):
        length, kind, _, sequence, _ = unpack_from("<IHHII", raw, place)
        assert sequence == 7
        answers.append((kind, raw[place + 16 : place + length]))
        place += (length + 3) & ~3
    return answers


def attributes(body: bytes, fixed: str) -> dict[int, bytes]:
    found = {}
    place = calcsize(fixed)
    while place < len(body):
        length, kind = unpack_from("<HH", body, place)
        found[kind] = body[place + 4 : place + length]
        place += (length + 3) & ~3
    return found


def test_the_one_link_is_loopback(caller: Caller) -> None:
    (kind, body), done = ask(caller, netlink(caller), request(GET_LINK))
    assert kind == NEW_LINK
    _, hardware, index, flags, _ = unpack_from("<BxHiII", body)
    assert (hardware, index, flags) == (772, 1, 0x10049)
    found = attributes(body, "<BxHiII")
    assert (found[3], found[4]) == (b"lo\0", pack("<I", 65536))
    assert done == (DONE, bytes(4))


@pytest.mark.parametrize("kind", [RAW, DATAGRAM])
def test_the_addresses_of_loopback_are_listed(caller: Caller, kind: int) -> None:
    *addresses, done = ask(caller, netlink(caller, kind), request(GET_ADDRESS))
    hosts = [attributes(body, "<BBBBI")[1] for _, body in addresses]
    assert hosts == [b"\x7f\0\0\1", bytes(15) + b"\1"]
    assert [unpack_from("<BB", body) for _, body in addresses] == [(AF_INET, 8), (AF_INET6, 128)]
    assert done[0] == DONE


def test_addresses_of_one_family_can_be_asked_for(caller: Caller) -> None:
    answers = ask(caller, netlink(caller), request(GET_ADDRESS, family=AF_INET6))
    assert [kind for kind, _ in answers] == [NEW_ADDRESS, DONE]


def test_there_is_no_route(caller: Caller) -> None:
    assert [kind for kind, _ in ask(caller, netlink(caller), request(GET_ROUTE))] == [DONE]


def test_changes_and_unsupported_requests_are_refused(caller: Caller) -> None:
    fd = netlink(caller)
    for kind, error in ((NEW_LINK, Errno.EPERM), (90, Errno.EOPNOTSUPP)):
        question = request(kind, REQUEST)
        assert ask(caller, fd, question) == [(ERROR, pack("<i", -error) + question)]


def test_a_broken_request_is_not_answered(caller: Caller) -> None:
    fd = netlink(caller)
    for question in (b"", b"\x01" * 15, pack("<IHHII", 15, GET_LINK, LIST, 7, 0),
                     pack("<IHHII", 99, GET_LINK, LIST, 7, 0), request(GET_LINK, 0)):  # fmt: skip
        caller.ok("sendto", fd, caller.put(question), len(question), 0, 0, 0)
    at = caller.room(64)
    assert caller.errno("recvfrom", fd, at, 64, DONTWAIT, 0, 0) is Errno.EAGAIN


def test_answers_that_nobody_reads_do_not_fill_memory(caller: Caller) -> None:
    fd = netlink(caller)
    question = request(GET_ADDRESS) * (SOCKET_QUEUE_BYTES // 100)
    at = caller.put(question)
    caller.ok("sendto", fd, at, len(question), 0, 0, 0)
    assert caller.errno("sendto", fd, at, len(question), 0, 0, 0) is Errno.ENOBUFS
    held = caller.room(4096)
    received = 0
    while (count := caller.call("recvfrom", fd, held, 4096, DONTWAIT, 0, 0)) > 0:
        received += count
    assert 0 < received < SOCKET_QUEUE_BYTES


def test_a_port_is_assigned_at_the_first_message(caller: Caller) -> None:
    fd = netlink(caller)
    at, length = caller.room(12), caller.pack("I", 12)
    caller.ok("getsockname", fd, at, length)
    assert caller.unpack("HHII", at) == (AF_NETLINK, 0, 0, 0)
    ask(caller, fd, request(GET_LINK))
    caller.ok("getsockname", fd, at, length)
    assert caller.unpack("HHII", at)[2] == caller.ok("getpid")


def test_netlink_messages_reach_only_the_kernel(caller: Caller) -> None:
    fd = netlink(caller)
    question = caller.put(request(GET_LINK))
    somebody = caller.pack("HHII", AF_NETLINK, 0, 99, 0)
    assert caller.errno("sendto", fd, question, 20, 0, somebody, 12) is Errno.ECONNREFUSED
    group = caller.pack("HHII", AF_NETLINK, 0, 0, 1)
    assert caller.errno("sendto", fd, question, 20, 0, group, 12) is Errno.EPERM
    kernel = caller.pack("HHII", AF_NETLINK, 0, 0, 0)
    assert caller.ok("sendto", fd, question, 20, 0, kernel, 12) == 20
    assert caller.errno("sendto", fd, question, 20, 0, kernel, 11) is Errno.EINVAL
    assert caller.errno("shutdown", fd, 2) is Errno.EOPNOTSUPP


def test_ioctl_reports_interfaces(caller: Caller) -> None:
    fd = caller.ok("socket", AF_INET, DATAGRAM, 0)

    def told(number: int) -> bytes:
        at = caller.put(b"lo".ljust(32, b"\0"))
        caller.ok("ioctl", fd, number, at)
        return caller.get(at + 16, 8)

    assert told(SIOCGIFFLAGS)[:4] == b"\x49\0\0\0"
    assert told(SIOCGIFADDR) == b"\2\0\0\0\x7f\0\0\1"
    assert told(SIOCGIFNETMASK) == b"\2\0\0\0\xff\0\0\0"
    assert told(SIOCGIFMTU)[:4] == pack("<I", 65536)
    assert told(SIOCGIFINDEX)[:4] == pack("<I", 1)
    other = caller.put(b"eth0".ljust(32, b"\0"))
    assert caller.errno("ioctl", fd, SIOCGIFINDEX, other) is Errno.ENODEV
    assert caller.errno("ioctl", fd, 0x8999, other) is Errno.ENOTTY


def test_an_interface_name_is_found_by_its_number(caller: Caller) -> None:
    fd = caller.ok("socket", AF_INET, DATAGRAM, 0)
    at = caller.put(pack("<16xI12x", 1))
    caller.ok("ioctl", fd, SIOCGIFNAME, at)
    assert caller.get(at, 3) == b"lo\0"
    assert caller.errno("ioctl", fd, SIOCGIFNAME, caller.put(pack("<16xI12x", 2))) is Errno.ENODEV


@pytest.mark.parametrize(("room", "size"), [(64, 32), (32, 32), (31, 0), (-1, 0)])
def test_a_list_of_interfaces_is_truncated_to_the_buffer(
    caller: Caller, room: int, size: int
) -> None:
    fd = caller.ok("socket", AF_INET, DATAGRAM, 0)
    at = caller.room(64)
    configuration = caller.pack("iI", room, at)
    caller.ok("ioctl", fd, SIOCGIFCONF, configuration)
    assert caller.unpack("i", configuration) == (size,)
    assert caller.get(at, 64).rstrip(b"\0") == (
        b"lo".ljust(16, b"\0") + b"\2\0\0\0\x7f\0\0\1" if size else b""
    )


def test_without_a_buffer_the_size_of_the_list_of_interfaces_is_returned(caller: Caller) -> None:
    fd = caller.ok("socket", AF_INET, DATAGRAM, 0)
    configuration = caller.pack("iI", 0, 0)
    caller.ok("ioctl", fd, SIOCGIFCONF, configuration)
    assert caller.unpack("i", configuration) == (32,)
