"""The network interfaces of a sandbox: only loopback.

Owns their description, which netlink and ioctl report, each in its own format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from wasmsand.kernel.sockets.address import AF_INET, AF_INET6

HARDWARE_LOOPBACK: Final = 772
"""ARPHRD_LOOPBACK."""
_UP, _LOOPBACK, _RUNNING, _LOWER_UP = 0x1, 0x8, 0x40, 0x1_0000


class InterfaceAddress(NamedTuple):
    """An address of 4 or 16 bytes, and the length of its network prefix."""

    family: int
    host: bytes
    prefix_length: int

    @property
    def mask(self) -> bytes:
        """The netmask."""
        bits = len(self.host) * 8
        return ((1 << bits) - (1 << bits - self.prefix_length)).to_bytes(len(self.host), "big")


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface."""

    index: int
    name: bytes
    hardware: int
    flags: int
    """IFF_*."""
    mtu: int
    queue_length: int
    addresses: tuple[InterfaceAddress, ...]


LOOPBACK: Final = Interface(
    index=1,
    name=b"lo",
    hardware=HARDWARE_LOOPBACK,
    flags=_UP | _LOOPBACK | _RUNNING | _LOWER_UP,
    mtu=65_536,
    queue_length=1000,
    addresses=(
        InterfaceAddress(AF_INET, b"\x7f\0\0\1", 8),
        InterfaceAddress(AF_INET6, bytes(15) + b"\1", 128),
    ),
)
INTERFACES: Final = (LOOPBACK,)
