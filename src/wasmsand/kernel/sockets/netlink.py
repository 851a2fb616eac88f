"""Netlink: queries about interfaces and addresses, as made by getifaddrs(3).

Owns `NetlinkSocket`, for NETLINK_ROUTE only. Rules: a request is answered at once, into the
socket's own queue. Dumps of links, addresses and routes are supported; changes are refused with
EPERM, other requests with EOPNOTSUPP. As on Linux, if there is no room for an answer, the rest is
lost and the next call gets ENOBUFS.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_UNSPEC, Address, NetlinkAddress
from wasmsand.kernel.sockets.base import Socket
from wasmsand.kernel.sockets.datagram import DatagramSocket, Header, Message
from wasmsand.kernel.sockets.interfaces import INTERFACES, Interface, InterfaceAddress
from wasmsand.kernel.sockets.rights import Rights

SOCK_RAW: Final = 3
NETLINK_ROUTE: Final = 0

_HEADER: Final = Struct("<IHHII")
"""struct nlmsghdr: length, type, flags, sequence number, port."""
_LINK: Final = Struct("<BxHiII")
"""struct ifinfomsg: family, hardware, index, flags, change."""
_ADDRESS: Final = Struct("<BBBBI")
"""struct ifaddrmsg: family, prefix length, flags, scope, index."""
_ATTRIBUTE: Final = Struct("<HH")
_U32: Final = Struct("<I")
_ERROR: Final = Struct("<i")

_NLM_F_REQUEST, _NLM_F_MULTI, _NLM_F_DUMP = 0x1, 0x2, 0x300
_NLMSG_ERROR, _NLMSG_DONE, _FIRST_TYPE = 2, 3, 16
_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_RTM_NEWADDR, _RTM_GETADDR = 20, 22
_RTM_GETROUTE: Final = 26
_KIND_MASK, _KIND_GET = 3, 2
"""Message types come in groups of four: new, delete, get, set."""
_IFLA_ADDRESS, _IFLA_BROADCAST, _IFLA_IFNAME, _IFLA_MTU = 1, 2, 3, 4
_IFLA_QDISC, _IFLA_TXQLEN = 6, 13
_IFA_ADDRESS, _IFA_LOCAL, _IFA_LABEL, _IFA_FLAGS = 1, 2, 3, 8
_IFA_F_PERMANENT, _SCOPE_HOST = 0x80, 254
_NO_HARDWARE_ADDRESS = bytes(6)
_KERNEL = NetlinkAddress(0, 0)


class NetlinkSocket(DatagramSocket):
    """A socket whose other end is the kernel."""

    __slots__ = ()

    type_number: ClassVar[int] = SOCK_RAW

    def name(self) -> Address:
        return self.local or _KERNEL

    def bind_netlink(self, address: NetlinkAddress) -> None:
        """bind(2). Port 0 requests a free port and gets the owner's pid; only the kernel sends to
        it, so it need not be unique. Multicast groups receive nothing, because interfaces never
        change."""
        self.local = NetlinkAddress(address.port or self.owner.pid, address.groups)

    def connect(self, address: Address, target: Socket | None) -> None:
        _require_kernel(address)
        self.remote = _KERNEL

    def send(
        self,
        data: bytes,
        to: Address | None,
        target: Socket | None,
        rights: Rights | None = None,
        header: Header | None = None,
        *,
        nonblocking: bool = False,
    ) -> int:
        """Process the requests in `data`, one after the other; `to` can only be the kernel."""
        self.raise_error()
        if to is not None:
            _require_kernel(to)
        if self.local is None:
            self.bind_netlink(_KERNEL)
        assert isinstance(self.local, NetlinkAddress)
        place = 0
        while len(data) - place >= _HEADER.size:
            length, kind, flags, sequence, _ = _HEADER.unpack_from(data, place)
            if not _HEADER.size <= length <= len(data) - place:
                break
            request = data[place : place + length]
            place += _aligned(length)
            if not flags & _NLM_F_REQUEST or kind < _FIRST_TYPE:
                continue
            answer = _answer(request, kind, flags, sequence, self.local.port)
            if not self._has_room(len(answer)):
                self.fail_with(Errno.ENOBUFS)
                break
            try:
                self._put(Message(answer, _KERNEL, None))
            except KernelError as error:
                self.fail_with(error.errno)
                break
        return len(data)

    def shutdown(self, read: bool, write: bool) -> None:
        raise KernelError(Errno.EOPNOTSUPP)


def _require_kernel(address: Address) -> None:
    assert isinstance(address, NetlinkAddress)
    if address.groups:
        raise KernelError(Errno.EPERM)
    if address.port:
        raise KernelError(Errno.ECONNREFUSED)


def _answer(request: bytes, kind: int, flags: int, sequence: int, port: int) -> bytes:
    """All messages of the answer to one request."""
    if kind & _KIND_MASK != _KIND_GET:
        error = Errno.EPERM
    elif kind in _LISTS and flags & _NLM_F_DUMP == _NLM_F_DUMP:
        family = request[_HEADER.size] if len(request) > _HEADER.size else AF_UNSPEC
        bodies = [*_LISTS[kind](family), (_NLMSG_DONE, _ERROR.pack(0))]
        return b"".join(
            [_message(type_, _NLM_F_MULTI, sequence, port, body) for type_, body in bodies]
        )
    else:
        error = Errno.EOPNOTSUPP
    body = _ERROR.pack(-error) + request
    return _message(_NLMSG_ERROR, 0, sequence, port, body)


def _links(_family: int) -> Iterator[tuple[int, bytes]]:
    for interface in INTERFACES:
        yield _RTM_NEWLINK, _link(interface)


def _link(interface: Interface) -> bytes:
    fixed = _LINK.pack(AF_UNSPEC, interface.hardware, interface.index, interface.flags, 0)
    return fixed + b"".join(
        (
            _attribute(_IFLA_IFNAME, interface.name + b"\0"),
            _attribute(_IFLA_TXQLEN, _U32.pack(interface.queue_length)),
            _attribute(_IFLA_MTU, _U32.pack(interface.mtu)),
            _attribute(_IFLA_QDISC, b"noqueue\0"),
            _attribute(_IFLA_ADDRESS, _NO_HARDWARE_ADDRESS),
            _attribute(_IFLA_BROADCAST, _NO_HARDWARE_ADDRESS),
        )
    )


def _addresses(family: int) -> Iterator[tuple[int, bytes]]:
    for interface in INTERFACES:
        for address in interface.addresses:
            if family in (AF_UNSPEC, address.family):
                yield _RTM_NEWADDR, _address(interface, address)


def _address(interface: Interface, address: InterfaceAddress) -> bytes:
    fixed = _ADDRESS.pack(
        address.family, address.prefix_length, _IFA_F_PERMANENT, _SCOPE_HOST, interface.index
    )
    parts = [_attribute(_IFA_ADDRESS, address.host)]
    if len(address.host) == 4:  # IPv6 addresses have no IFA_LOCAL and no label
        parts.append(_attribute(_IFA_LOCAL, address.host))
        parts.append(_attribute(_IFA_LABEL, interface.name + b"\0"))
    parts.append(_attribute(_IFA_FLAGS, _U32.pack(_IFA_F_PERMANENT)))
    return fixed + b"".join(parts)


def _routes(_family: int) -> Iterator[tuple[int, bytes]]:
    """Empty: loopback addresses need no route."""
    return iter(())


_LISTS: Final = {_RTM_GETLINK: _links, _RTM_GETADDR: _addresses, _RTM_GETROUTE: _routes}


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return (_ATTRIBUTE.pack(length, kind) + value).ljust(_aligned(length), b"\0")


def _message(kind: int, flags: int, sequence: int, port: int, body: bytes) -> bytes:
    length = _HEADER.size + len(body)
    return (_HEADER.pack(length, kind, flags, sequence, port) + body).ljust(_aligned(length), b"\0")
