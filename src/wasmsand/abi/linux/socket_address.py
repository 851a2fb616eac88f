"""struct sockaddr: reading and writing addresses.

Owns the layout of addresses in guest memory. Rules: a length is checked before anything is read;
the kernel returns the full length of an address even if the guest's buffer is too small.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    AF_UNSPEC,
    Address,
    InetAddress,
    NetlinkAddress,
    UnixAddress,
)

_FAMILY: Final = Struct("<H")
_INET: Final = Struct(">H4s8x")
_INET6: Final = Struct(">HI16sI")
_NETLINK: Final = Struct("<xxII")
_UNIX_PATH_MAX: Final = 108
_STORAGE: Final = 128


def read_address(context: CallContext, address: int, length: int, family: int) -> Address | None:
    """The address at `address`, for a socket of `family`; None for AF_UNSPEC."""
    if not 2 <= length <= _STORAGE:
        raise KernelError(Errno.EINVAL)
    raw = context.memory.read(address, length)
    (named,) = _FAMILY.unpack_from(raw)
    if named == AF_UNSPEC:
        return None
    if named != family:
        raise KernelError(Errno.EINVAL if family == AF_UNIX else Errno.EAFNOSUPPORT)
    body = raw[2:]
    if family == AF_UNIX:
        return _unix(body)
    if family == AF_NETLINK:
        if len(body) < _NETLINK.size:
            raise KernelError(Errno.EINVAL)
        return NetlinkAddress(*_NETLINK.unpack_from(body))
    layout = _INET if family == AF_INET else _INET6
    if len(body) < layout.size:
        # Linux accepts an IPv6 address without the scope id.
        if family == AF_INET or len(body) < layout.size - 4:
            raise KernelError(Errno.EINVAL)
        body = body.ljust(layout.size, b"\0")
    if family == AF_INET:
        port, host = _INET.unpack_from(body)
        return InetAddress(AF_INET, host, port)
    port, _, host, _ = _INET6.unpack_from(body)
    return InetAddress(AF_INET6, host, port)


def _unix(body: bytes) -> UnixAddress:
    if len(body) > _UNIX_PATH_MAX:
        raise KernelError(Errno.EINVAL)
    if not body or body[0] == 0:
        return UnixAddress(body)
    return UnixAddress(body.split(b"\0", 1)[0])


def pack_address(address: Address) -> bytes:
    """struct sockaddr_un, sockaddr_in, sockaddr_in6 or sockaddr_nl."""
    if isinstance(address, UnixAddress):
        name = address.name
        end = b"\0" if name and name[0] else b""
        return _FAMILY.pack(AF_UNIX) + name + end
    if isinstance(address, NetlinkAddress):
        return _FAMILY.pack(AF_NETLINK) + _NETLINK.pack(*address)
    if address.family == AF_INET:
        return _FAMILY.pack(AF_INET) + _INET.pack(address.port, address.host)
    return _FAMILY.pack(AF_INET6) + _INET6.pack(address.port, 0, address.host, 0)


def write_address(context: CallContext, value: Address, address: int, length_at: int) -> None:
    """Write as much of `value` as fits, and its full length."""
    if not address:
        return
    room = signed(context.memory.read_u32(length_at))
    if room < 0:
        raise KernelError(Errno.EINVAL)
    raw = pack_address(value)
    context.memory.write(address, raw[:room])
    context.memory.write_u32(length_at, len(raw))


def require_address_room(context: CallContext, address: int, length_at: int) -> None:
    """Check the buffer before a message is taken."""
    if address:
        room = signed(context.memory.read_u32(length_at))
        if room < 0:
            raise KernelError(Errno.EINVAL)
        context.memory.require(address, min(room, _STORAGE))
