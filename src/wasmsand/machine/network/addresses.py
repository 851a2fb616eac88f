"""Which addresses belong to the public internet.

Owns the classification of IP addresses. Rules: the table below decides, not the `ipaddress`
module, whose answers differ between versions of Python. An address that carries an IPv4 address
inside (IPv4-mapped, NAT64, 6to4, Teredo, ISATAP) is no more public than the address inside. An
IPv6 address outside 2000::/3 is never public, except a NAT64 address with a public one inside.
`ipaddress` is imported at the first use.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    IPAddress = IPv4Address | IPv6Address
    IPNetwork = IPv4Network | IPv6Network


class AddressKind(enum.Enum):
    """What an address is for. The values appear in messages."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    METADATA = "cloud metadata"
    RESERVED = "reserved"


_SPECIAL: Final = (
    # The special-purpose registries of IANA. The first row that contains the address decides.
    ("169.254.169.254/32", AddressKind.METADATA),  # most clouds
    ("169.254.169.253/32", AddressKind.METADATA),  # AWS: name server
    ("169.254.170.2/32", AddressKind.METADATA),  # AWS: containers
    ("169.254.170.23/32", AddressKind.METADATA),  # AWS: pods
    ("100.100.100.200/32", AddressKind.METADATA),  # Alibaba
    ("168.63.129.16/32", AddressKind.METADATA),  # Azure
    ("192.0.0.192/32", AddressKind.METADATA),  # Oracle
    ("fd00:ec2::/32", AddressKind.METADATA),  # AWS
    ("fd20:ce::254/128", AddressKind.METADATA),  # Google
    ("fd00:42::42/128", AddressKind.METADATA),  # Scaleway
    ("fe80::a9fe:a9fe/128", AddressKind.METADATA),  # OpenStack
    ("0.0.0.0/8", AddressKind.RESERVED),  # this host
    ("10.0.0.0/8", AddressKind.PRIVATE),
    ("100.64.0.0/10", AddressKind.PRIVATE),  # carriers
    ("127.0.0.0/8", AddressKind.LOOPBACK),
    ("169.254.0.0/16", AddressKind.LINK_LOCAL),
    ("172.16.0.0/12", AddressKind.PRIVATE),
    ("192.0.0.0/24", AddressKind.RESERVED),
    ("192.0.2.0/24", AddressKind.RESERVED),  # documentation
    ("192.88.99.0/24", AddressKind.RESERVED),  # relays of 6to4
    ("192.168.0.0/16", AddressKind.PRIVATE),
    ("198.18.0.0/15", AddressKind.RESERVED),  # benchmarks; inside a sandbox, names
    ("198.51.100.0/24", AddressKind.RESERVED),  # documentation
    ("203.0.113.0/24", AddressKind.RESERVED),  # documentation
    ("224.0.0.0/4", AddressKind.MULTICAST),
    ("240.0.0.0/4", AddressKind.RESERVED),  # and broadcast
    ("::1/128", AddressKind.LOOPBACK),
    ("64:ff9b:1::/48", AddressKind.PRIVATE),  # NAT64 of a local network
    ("2001:db8::/32", AddressKind.RESERVED),  # documentation
    ("2001:10::/28", AddressKind.RESERVED),
    ("2001:20::/28", AddressKind.RESERVED),
    ("2001:2::/48", AddressKind.RESERVED),  # benchmarks
    ("3fff::/20", AddressKind.RESERVED),  # documentation
    ("fc00::/7", AddressKind.PRIVATE),
    ("fe80::/10", AddressKind.LINK_LOCAL),
    ("fec0::/10", AddressKind.PRIVATE),  # site-local
    ("ff00::/8", AddressKind.MULTICAST),
)
_GLOBAL_UNICAST: Final = "2000::/3"
_NUMBER: Final = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_OCTET_MAX: Final = 255


def parse_address(text: str) -> IPAddress | None:
    """The address that `text` is in its usual form: four decimal numbers without leading zeros, or
    IPv6 without a zone. An IPv4-mapped address becomes the IPv4 address. None if it is neither."""
    import ipaddress

    try:
        return plain(ipaddress.ip_address(text))
    except ValueError:
        return None


def plain(address: IPAddress) -> IPAddress:
    """The IPv4 address inside an IPv4-mapped IPv6 one, which is the one that a host connects to;
    any other address without its zone."""
    import ipaddress

    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or ipaddress.IPv6Address(int(address))
    return address


def is_numeric(host: str) -> bool:
    """Whether `host` is or could be read as an IPv4 address in one of its forms: 127.0.0.1,
    2130706433, 0x7f.1, 0177.0.0.1. As browsers do, the last label decides."""
    return _NUMBER.match(host.rstrip(".").rpartition(".")[2]) is not None


def legacy_address(host: str) -> IPv4Address | None:
    """The address that inet_aton(3) reads from a numeric host; None if it refuses it too."""
    import ipaddress

    parts = host.rstrip(".").split(".")
    values: list[int] = []
    for part in parts:
        if _NUMBER.match(part) is None:
            return None
        try:
            is_octal = len(part) > 1 and part[0] == "0" and part[1] not in "xX"
            values.append(int(part, 8 if is_octal else 0))
        except ValueError:
            return None
    *leading, last = values
    rest = 8 * (4 - len(leading))
    if len(values) > 4 or last >> rest or any(value > _OCTET_MAX for value in leading):
        return None
    for index, value in enumerate(leading):
        last |= value << (24 - 8 * index)
    return ipaddress.IPv4Address(last)


def embedded(address: IPAddress) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address carries for translators and tunnels."""
    import ipaddress

    if isinstance(address, ipaddress.IPv4Address):
        return ()
    value = int(address)
    low = ipaddress.IPv4Address(value & 0xFFFF_FFFF)
    prefix = value >> 32
    if prefix in (0, 0xFFFF, 0xFFFF_0000, 0x0064_FF9B << 64):
        return (low,)  # IPv4-compatible, IPv4-mapped, translated (SIIT), NAT64
    found: tuple[IPv4Address, ...] = ()
    if address.sixtofour is not None:
        found = (address.sixtofour,)
    elif address.teredo is not None:
        found = address.teredo
    if (value >> 32) & 0xFCFF_FFFF == 0x0000_5EFE:
        found += (low,)  # ISATAP
    return found


@lru_cache(maxsize=1)
def _special_networks() -> tuple[tuple[IPNetwork, AddressKind], ...]:
    import ipaddress

    return tuple((ipaddress.ip_network(text), kind) for text, kind in _SPECIAL)


@lru_cache(maxsize=1)
def _global_unicast() -> IPNetwork:
    import ipaddress

    return ipaddress.ip_network(_GLOBAL_UNICAST)


def _network_of(address: IPAddress) -> tuple[IPNetwork | None, AddressKind]:
    """The special network that contains an address, and its kind."""
    for network, kind in _special_networks():
        if network.version == address.version and address in network:
            return network, kind
    if address.version == 4 or address in _global_unicast():
        return None, AddressKind.PUBLIC
    return None, AddressKind.RESERVED


def kind_of(address: IPAddress) -> AddressKind:
    """What an address is for, seen through all of its forms."""
    address = plain(address)
    _, kind = _network_of(address)
    inside = embedded(address)
    for carried in inside:
        carried_kind = kind_of(carried)
        if carried_kind is not AddressKind.PUBLIC:
            return kind if kind is AddressKind.LOOPBACK else carried_kind
    if inside and kind is AddressKind.RESERVED and int(address) >> 96 == 0x0064_FF9B:
        return AddressKind.PUBLIC
    return kind


def names_private(network: IPNetwork, address: IPAddress) -> bool:
    """Whether a rule for `network` means `address`, which is not public, and does not only happen
    to contain it. 10.0.0.0/8 means 10.0.0.1; 0.0.0.0/0 means the public internet. An address of
    cloud metadata must be named alone."""
    if address not in network:
        return False
    if network.num_addresses == 1:
        return True
    special, kind = _network_of(address)
    if kind is AddressKind.METADATA or special is None:
        return False
    return int(special.network_address) <= int(network.network_address) and int(
        network.broadcast_address
    ) <= int(special.broadcast_address)
