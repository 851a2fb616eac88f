"""ioctl on sockets: queries about network interfaces.

Owns struct ifreq and struct ifconf. Rules: the data comes from `kernel.sockets.interfaces`; nothing
can be changed; an unknown request is ENOTTY.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.socket_address import pack_address
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, InetAddress
from wasmsand.kernel.sockets.interfaces import INTERFACES, Interface

_SIOCGIFNAME, _SIOCGIFCONF, _SIOCGIFFLAGS = 0x8910, 0x8912, 0x8913
_SIOCGIFADDR, _SIOCGIFBRDADDR, _SIOCGIFNETMASK = 0x8915, 0x8919, 0x891B
_SIOCGIFMETRIC, _SIOCGIFMTU, _SIOCGIFHWADDR = 0x891D, 0x8921, 0x8927
_SIOCGIFINDEX, _SIOCGIFTXQLEN = 0x8933, 0x8942
_NAME_SIZE: Final = 16
_REQUEST: Final = Struct("<16s16s")
"""struct ifreq: an interface name and a value."""
_CONFIGURATION: Final = Struct("<iI")
"""struct ifconf: the size of a buffer, and its address."""


def interface_ioctl(context: CallContext, request: int, address: int) -> int:
    """One of the SIOCGIF* requests."""
    if request == _SIOCGIFCONF:
        return _list(context, address)
    if request == _SIOCGIFNAME:
        index = signed(context.memory.read_u32(address + _NAME_SIZE))
        found = next((known for known in INTERFACES if known.index == index), None)
        if found is None:
            raise KernelError(Errno.ENODEV)
        context.memory.write(address, found.name.ljust(_NAME_SIZE, b"\0"))
        return 0
    answer = _ANSWERS.get(request)
    if answer is None:
        raise KernelError(Errno.ENOTTY, f"ioctl {request:#x}")
    name, _ = context.memory.unpack(_REQUEST, address)
    told = answer(_named(name))
    context.memory.write(address + _NAME_SIZE, told)
    return 0


def _named(field: bytes) -> Interface:
    name = field[: _NAME_SIZE - 1].split(b"\0", 1)[0]
    for interface in INTERFACES:
        if interface.name == name:
            return interface
    raise KernelError(Errno.ENODEV)


def _list(context: CallContext, address: int) -> int:
    """As many interfaces as fit. If the buffer is NULL, return the size needed."""
    room, at = context.memory.unpack(_CONFIGURATION, address)
    requests = [_REQUEST.pack(known.name, _internet_address(known)) for known in INTERFACES]
    if at:
        requests = requests[: max(0, room) // _REQUEST.size]
        context.memory.write(at, b"".join(requests))
    context.memory.write_u32(address, len(requests) * _REQUEST.size)
    return 0


def _internet_address(interface: Interface) -> bytes:
    return _packed(_ipv4(interface)[0])


def _netmask(interface: Interface) -> bytes:
    return _packed(_ipv4(interface)[1])


def _ipv4(interface: Interface) -> tuple[bytes, bytes]:
    for address in interface.addresses:
        if address.family == AF_INET:
            return address.host, address.mask
    raise KernelError(Errno.EADDRNOTAVAIL)


def _packed(host: bytes) -> bytes:
    return pack_address(InetAddress(AF_INET, host, 0))


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


_ANSWERS: Final[dict[int, Callable[[Interface], bytes]]] = {
    # the flags in struct ifreq have 16 bits
    _SIOCGIFFLAGS: lambda interface: (interface.flags & 0xFFFF).to_bytes(2, "little"),
    _SIOCGIFADDR: _internet_address,
    _SIOCGIFBRDADDR: lambda _: _packed(bytes(4)),
    _SIOCGIFNETMASK: _netmask,
    _SIOCGIFMETRIC: lambda _: _number(0),
    _SIOCGIFMTU: lambda interface: _number(interface.mtu),
    _SIOCGIFHWADDR: lambda interface: interface.hardware.to_bytes(2, "little") + bytes(14),
    _SIOCGIFINDEX: lambda interface: _number(interface.index),
    _SIOCGIFTXQLEN: lambda interface: _number(interface.queue_length),
}
