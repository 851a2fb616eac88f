"""Where Internet addresses lead: inside, outside, or nowhere."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, InetAddress, any_address
from wasmsand.kernel.sockets.outside import DatagramSender, OutsideEnd
from wasmsand.kernel.sockets.routing import require_local, route


class Gateway:
    """A capability whose guest has the address 10.0.2.15."""

    def source(self, destination: InetAddress) -> bytes:
        return b"\x0a\0\x02\x0f"

    def connect_stream(self, destination: InetAddress, end: OutsideEnd) -> None:
        raise AssertionError("nobody connects")

    def send_datagram(self, destination: InetAddress, data: bytes, sender: DatagramSender) -> None:
        raise AssertionError("nobody sends")


def address(text: str, port: int = 80) -> InetAddress:
    host = ip_address(text)
    return InetAddress(AF_INET if host.version == 4 else AF_INET6, host.packed, port)


@pytest.mark.parametrize("outside", [None, Gateway()])
@pytest.mark.parametrize(
    ("asked", "destination", "source"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("127.1.2.3", "127.1.2.3", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1", "127.0.0.1"),
        ("::1", "::1", "::1"),
        ("::", "::1", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("::ffff:0.0.0.0", "127.0.0.1", "127.0.0.1"),
    ],
)
def test_loopback_is_inside_whatever_the_capability(
    outside: Gateway | None, asked: str, destination: str, source: str
) -> None:
    found = route(address(asked), outside)
    assert found == (address(destination), ip_address(source).packed, None)


@pytest.mark.parametrize(
    "asked", ["8.8.8.8", "10.0.0.1", "169.254.169.254", "255.255.255.255", "::2", "fe80::1",
              "::127.0.0.1", "::ffff:8.8.8.8", "128.0.0.1", "126.255.255.255"],
)  # fmt: skip
def test_every_other_address_needs_the_capability(asked: str) -> None:
    with pytest.raises(KernelError) as refusal:
        route(address(asked), None)
    assert refusal.value.errno is Errno.ENETUNREACH
    gateway = Gateway()
    found = route(address(asked), gateway)
    assert found.destination == address(asked).plain()
    assert (found.source, found.outside) == (b"\x0a\0\x02\x0f", gateway)
    with pytest.raises(KernelError) as refusal:
        require_local(address(asked))
    assert refusal.value.errno is Errno.EADDRNOTAVAIL


def test_the_local_address_of_a_connection_is_the_bound_one_or_the_source() -> None:
    outside = route(address("8.8.8.8"), Gateway())
    local = outside.local_for(any_address(AF_INET, 4000), AF_INET)
    assert local == address("10.0.2.15", 4000)
    mapped = outside.local_for(any_address(AF_INET6, 4000), AF_INET6)
    assert mapped == address("::ffff:10.0.2.15", 4000)
    with pytest.raises(KernelError) as refusal:
        outside.local_for(address("127.0.0.1", 4000), AF_INET)
    assert refusal.value.errno is Errno.EINVAL
    inside = route(address("127.0.0.2"), Gateway())
    assert inside.local_for(address("127.0.0.9", 4000), AF_INET) == address("127.0.0.9", 4000)
