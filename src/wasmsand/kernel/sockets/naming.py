"""Binding names to sockets, and finding sockets by name.

Owns the rules of bind(2), and finding sockets by Unix name. Rules: only root may bind ports below
1024. An Internet address must be local. A Unix name in the file system is an inode, created and
found with the permissions of the process. `Network` stores which socket has which name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFMT, S_IFSOCK
from wasmsand.kernel.sockets.address import Address, InetAddress, NetlinkAddress, UnixAddress
from wasmsand.kernel.sockets.base import Owner, Socket
from wasmsand.kernel.sockets.datagram import DatagramSocket
from wasmsand.kernel.sockets.netlink import NetlinkSocket
from wasmsand.kernel.sockets.routing import require_local
from wasmsand.kernel.sockets.stream import StreamSocket

if TYPE_CHECKING:
    from wasmsand.kernel.process.process import Process

_PRIVILEGED_PORTS: Final = 1024
_MAY_WRITE: Final = 2


def owner_of(process: Process) -> Owner:
    """`process` as the owner of a socket."""
    identity = process.identity
    return Owner(process.pid, identity.euid, identity.egid)


def bind(process: Process, socket: Socket, address: Address) -> None:
    """bind(2) by `process`, to an address of the socket's family."""
    if socket.local is not None:
        raise KernelError(Errno.EINVAL)
    if isinstance(address, InetAddress):
        require_local(address)
        if 0 < address.port < _PRIVILEGED_PORTS and process.identity.euid != 0:
            raise KernelError(Errno.EACCES)
        assert isinstance(socket, StreamSocket | DatagramSocket)
        socket.bind_inet(address)
    elif isinstance(address, UnixAddress):
        _bind_unix(process, socket, address)
    else:
        assert isinstance(socket, NetlinkSocket)
        assert isinstance(address, NetlinkAddress)
        socket.bind_netlink(address)


def _bind_unix(process: Process, socket: Socket, address: UnixAddress) -> None:
    name = address.name
    network = socket.network
    if not name or name[0] == 0:
        socket.local = UnixAddress(b"\0" + network.bind_abstract(socket, name[1:]))
        return
    try:
        node = network.namespace.mknod(
            process.identity.credentials(), process.cwd, name, S_IFSOCK | 0o777, 0, process.umask
        )
    except KernelError as error:
        if error.errno is Errno.EEXIST:
            raise KernelError(Errno.EADDRINUSE) from None
        raise
    network.bind_node(socket, node)
    socket.local = address


def find(process: Process, socket: Socket, address: Address) -> Socket | None:
    """The socket bound to `address`, to which `socket` wants to send or connect. None if no socket
    is bound to the Unix name, or if it is not a Unix address. Errors are those of connect(2)."""
    if not isinstance(address, UnixAddress):
        return None
    network = socket.network
    name = address.name
    if not name:
        raise KernelError(Errno.EINVAL)
    if name[0] == 0:
        return network.abstract.get(name[1:])
    namespace = network.namespace
    credentials = process.identity.credentials()
    node = namespace.resolve(credentials, process.cwd, name)
    namespace.access(credentials, node, _MAY_WRITE)
    if namespace.stat(node).mode & S_IFMT != S_IFSOCK:
        return None
    return network.by_node.get(node)
