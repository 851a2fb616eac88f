"""Sockets: making, naming, connecting and asking them.

Owns the socket calls that move no data; those that do are in `calls_message`. Rules: a Unix
name in the file system is an inode, which is made and found with the rights of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeVar

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.socket_address import read_address, require_address_room, write_address
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import O_CLOEXEC, O_NONBLOCK, S_IFMT, S_IFSOCK
from wasmsand.kernel.sockets import options
from wasmsand.kernel.sockets.address import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    InetAddress,
    NetlinkAddress,
    UnixAddress,
    require_local,
)
from wasmsand.kernel.sockets.base import NOBODY, Peer, Socket
from wasmsand.kernel.sockets.datagram import SOCK_DGRAM, DatagramSocket
from wasmsand.kernel.sockets.netlink import NETLINK_ROUTE, SOCK_RAW, NetlinkSocket
from wasmsand.kernel.sockets.stream import SOCK_STREAM, State, StreamSocket, socket_pair
from wasmsand.kernel.wait import WouldBlock

Result = TypeVar("Result")

_TYPE_MASK: Final = 0xF
_Types = dict[int, type[StreamSocket] | type[DatagramSocket]]
_TYPES: Final[_Types] = {SOCK_STREAM: StreamSocket, SOCK_DGRAM: DatagramSocket}
_NETLINK_TYPES: Final[_Types] = {SOCK_RAW: NetlinkSocket, SOCK_DGRAM: NetlinkSocket}
_INET_PROTOCOLS: Final = {SOCK_STREAM: options.IPPROTO_TCP, SOCK_DGRAM: options.IPPROTO_UDP}
_TIMEVAL: Final = Struct("<qq")
_LINGER: Final = Struct("<ii")
_CREDENTIALS: Final = Struct("<iII")
_PRIVILEGED_PORTS: Final = 1024
_MAY_WRITE: Final = 2
_SOCK_FLAGS: Final = O_NONBLOCK | O_CLOEXEC


def socket_at(context: CallContext, fd: int) -> Socket:
    """The socket behind an fd, or ENOTSOCK."""
    file = context.file(fd)
    if not isinstance(file, Socket):
        raise KernelError(Errno.ENOTSOCK)
    return file


def _make(context: CallContext, domain: int, kind: int, protocol: int) -> Socket:
    flags = kind & ~_TYPE_MASK
    if flags & ~_SOCK_FLAGS:
        raise KernelError(Errno.EINVAL)
    if domain not in (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK):
        raise KernelError(Errno.EAFNOSUPPORT)
    number = kind & _TYPE_MASK
    type_ = (_NETLINK_TYPES if domain == AF_NETLINK else _TYPES).get(number)
    if type_ is None:
        raise KernelError(Errno.ESOCKTNOSUPPORT)
    if domain == AF_UNIX:
        if protocol not in (0, AF_UNIX):
            raise KernelError(Errno.EPROTONOSUPPORT)
        protocol = 0
    elif domain == AF_NETLINK:
        if protocol != NETLINK_ROUTE:
            raise KernelError(Errno.EPROTONOSUPPORT)
    elif protocol in (0, _INET_PROTOCOLS[number]):
        protocol = _INET_PROTOCOLS[number]
    else:
        raise KernelError(Errno.EPROTONOSUPPORT)
    return type_(context.kernel.network, domain, protocol, _caller(context), flags)


def _caller(context: CallContext) -> Peer:
    process = context.process
    return Peer(process.pid, process.identity.euid, process.identity.egid)


def socket(context: CallContext, domain: int, kind: int, protocol: int) -> int:
    """socket(2)."""
    made = _make(context, domain, kind, protocol)
    return context.process.fds.install(made, close_on_exec=bool(kind & O_CLOEXEC))


def socketpair(context: CallContext, domain: int, kind: int, protocol: int, address: int) -> int:
    """socketpair(2)."""
    context.memory.require(address, 8)
    one, two = (_make(context, domain, kind, protocol) for _ in range(2))
    if domain != AF_UNIX:
        raise KernelError(Errno.EOPNOTSUPP)
    if isinstance(one, StreamSocket) and isinstance(two, StreamSocket):
        socket_pair(one, two)
    elif isinstance(one, DatagramSocket) and isinstance(two, DatagramSocket):
        one.pair_with(two)
    fds = context.process.fds
    on_exec = bool(kind & O_CLOEXEC)
    try:
        first = fds.install(one, close_on_exec=on_exec)
    except KernelError:
        two.dispose()
        raise
    try:
        second = fds.install(two, close_on_exec=on_exec)
    except KernelError:
        fds.close(first)
        raise
    context.memory.write_u32(address, first)
    context.memory.write_u32(address + 4, second)
    return 0


def bind(context: CallContext, fd: int, address: int, length: int) -> int:
    """bind(2)."""
    found = socket_at(context, fd)
    wanted = read_address(context, address, length, found.family)
    if wanted is None:
        raise KernelError(Errno.EINVAL if found.is_unix else Errno.EAFNOSUPPORT)
    if found.local is not None:
        raise KernelError(Errno.EINVAL)
    if isinstance(found, NetlinkSocket):
        assert isinstance(wanted, NetlinkAddress)
        found.bind_netlink(wanted)
    elif isinstance(wanted, InetAddress):
        require_local(wanted)
        if 0 < wanted.port < _PRIVILEGED_PORTS and context.process.identity.euid != 0:
            raise KernelError(Errno.EACCES)
        assert isinstance(found, StreamSocket | DatagramSocket)
        found.bind_inet(wanted)
    elif isinstance(wanted, UnixAddress):
        _bind_unix(context, found, wanted)
    return 0


def _bind_unix(context: CallContext, found: Socket, wanted: UnixAddress) -> None:
    name = wanted.name
    network = context.kernel.network
    if not name or name[0] == 0:
        found.local = UnixAddress(b"\0" + network.bind_abstract(found, name[1:]))
        return
    process = context.process
    try:
        node = context.kernel.namespace.mknod(
            process.identity.credentials(), process.cwd, name, S_IFSOCK | 0o777, 0, process.umask
        )
    except KernelError as error:
        if error.errno is Errno.EEXIST:
            raise KernelError(Errno.EADDRINUSE) from None
        raise
    network.bind_node(found, node)
    found.local = wanted


def find_unix(context: CallContext, address: UnixAddress) -> Socket | None:
    """Who has a Unix name; errors are those of connect(2)."""
    network = context.kernel.network
    name = address.name
    if not name:
        raise KernelError(Errno.EINVAL)
    if name[0] == 0:
        return network.abstract.get(name[1:])
    process, namespace = context.process, context.kernel.namespace
    credentials = process.identity.credentials()
    node = namespace.resolve(credentials, process.cwd, name)
    namespace.access(credentials, node, _MAY_WRITE)
    if namespace.stat(node).mode & S_IFMT != S_IFSOCK:
        return None
    return network.by_node.get(node)


def listen(context: CallContext, fd: int, backlog: int) -> int:
    """listen(2)."""
    found = socket_at(context, fd)
    found.owner = _caller(context)
    found.listen(signed(backlog))
    return 0


def accept4(context: CallContext, fd: int, address: int, length_at: int, flags: int) -> int:
    """accept4(2)."""
    if flags & ~_SOCK_FLAGS:
        raise KernelError(Errno.EINVAL)
    listener = socket_at(context, fd)
    require_address_room(context, address, length_at)
    context.process.fds.require_room()
    accepted = timed(context, listener.receive_timeout_ns, lambda: listener.accept(False))
    accepted.flags |= flags & O_NONBLOCK
    new = context.process.fds.install(accepted, close_on_exec=bool(flags & O_CLOEXEC))
    if accepted.peer is not None:
        write_address(context, accepted.peer, address, length_at)
    return new


def accept(context: CallContext, fd: int, address: int, length_at: int) -> int:
    """accept(2)."""
    return accept4(context, fd, address, length_at, 0)


def connect(context: CallContext, fd: int, address: int, length: int) -> int:
    """connect(2)."""
    found = socket_at(context, fd)
    wanted = read_address(context, address, length, found.family)
    if wanted is None:
        if not isinstance(found, DatagramSocket):
            raise KernelError(Errno.EINVAL if found.is_unix else Errno.EAFNOSUPPORT)
        found.disconnect()
        return 0
    found.owner = _caller(context)
    target = find_unix(context, wanted) if isinstance(wanted, UnixAddress) else None
    timed(context, found.send_timeout_ns, lambda: found.connect(wanted, target))
    return 0


def getsockname(context: CallContext, fd: int, address: int, length_at: int) -> int:
    """getsockname(2)."""
    write_address(context, socket_at(context, fd).name(), address, length_at)
    return 0


def getpeername(context: CallContext, fd: int, address: int, length_at: int) -> int:
    """getpeername(2)."""
    found = socket_at(context, fd)
    if found.peer is None or not is_connected(found):
        raise KernelError(Errno.ENOTCONN)
    write_address(context, found.peer, address, length_at)
    return 0


def is_connected(found: Socket) -> bool:
    """Whether there is, or was, another end that has not broken off."""
    if not isinstance(found, StreamSocket):
        return True
    return found.rx is not None and found.state is not State.RESET


def shutdown(context: CallContext, fd: int, how: int) -> int:
    """shutdown(2)."""
    found = socket_at(context, fd)
    if how > 2:
        raise KernelError(Errno.EINVAL)
    found.shutdown(how != 1, how != 0)
    return 0


def timed(context: CallContext, timeout_ns: int, attempt: Callable[[], Result]) -> Result:
    """Make an attempt; EAGAIN when it has waited for `timeout_ns` (SO_RCVTIMEO or SO_SNDTIMEO;
    0 is for ever) over all tries."""
    try:
        return attempt()
    except WouldBlock as block:
        if not timeout_ns:
            raise
        now = context.kernel.clock.monotonic()
        deadline = context.thread.call.deadline
        if deadline is None:
            deadline = now + timeout_ns
        if now >= deadline:
            raise KernelError(Errno.EAGAIN) from None
        raise WouldBlock(block.queues, deadline) from None


def setsockopt(
    context: CallContext, fd: int, level: int, name: int, address: int, length: int
) -> int:
    """setsockopt(2)."""
    found = socket_at(context, fd)
    option = (level, name)
    memory = context.memory
    if option in (options.SO_RCVTIMEO, options.SO_SNDTIMEO):
        if length < _TIMEVAL.size:
            raise KernelError(Errno.EINVAL)
        seconds, micro = memory.unpack(_TIMEVAL, address)
        micro &= 0xFFFF_FFFF
        if micro >= 1_000_000:
            raise KernelError(Errno.EDOM)
        timeout = max(0, seconds * SECOND + micro * 1000)
        if option == options.SO_RCVTIMEO:
            found.receive_timeout_ns = timeout
        else:
            found.send_timeout_ns = timeout
        return 0
    if option == options.SO_LINGER:
        if length < _LINGER.size:
            raise KernelError(Errno.EINVAL)
        found.linger = memory.unpack(_LINGER, address)
        return 0
    if length < 4:
        raise KernelError(Errno.EINVAL)
    value = signed(memory.read_u32(address))
    if option == options.IPV6_V6ONLY and found.local is not None:
        raise KernelError(Errno.EINVAL)
    _require_level(found, level)
    found.set_option(option, value)
    return 0


def getsockopt(
    context: CallContext, fd: int, level: int, name: int, address: int, length_at: int
) -> int:
    """getsockopt(2)."""
    found = socket_at(context, fd)
    room = signed(context.memory.read_u32(length_at))
    if room < 0:
        raise KernelError(Errno.EINVAL)
    context.memory.require(address, min(room, 128))
    raw = _option_bytes(found, (level, name))[:room]
    context.memory.write(address, raw)
    context.memory.write_u32(length_at, len(raw))
    return 0


def _option_bytes(found: Socket, option: tuple[int, int]) -> bytes:
    if option == options.SO_PEERCRED:
        peer = found.peer_owner if isinstance(found, StreamSocket) else NOBODY
        return _CREDENTIALS.pack(peer.pid, peer.uid, peer.gid)
    if option == options.SO_LINGER:
        return _LINGER.pack(*found.linger)
    if option in (options.SO_RCVTIMEO, options.SO_SNDTIMEO):
        receiving = option == options.SO_RCVTIMEO
        timeout = found.receive_timeout_ns if receiving else found.send_timeout_ns
        return _TIMEVAL.pack(timeout // SECOND, timeout % SECOND // 1000)
    if option == options.SO_ERROR:
        value = int(found.take_error() or 0)
    elif option == options.SO_TYPE:
        value = found.type_number
    elif option == options.SO_DOMAIN:
        value = found.family
    elif option == options.SO_PROTOCOL:
        value = found.protocol
    elif option == options.SO_ACCEPTCONN:
        value = int(found.listening)
    else:
        _require_level(found, option[0])
        value = found.option(option)
    return value.to_bytes(4, "little", signed=True)


def _require_level(found: Socket, level: int) -> None:
    """EOPNOTSUPP for an option of a protocol that the socket does not speak."""
    if level == options.SOL_SOCKET:
        return
    if found.is_unix or (level == options.IPPROTO_IPV6 and found.family != AF_INET6):
        raise KernelError(Errno.EOPNOTSUPP if found.is_unix else Errno.ENOPROTOOPT)
    if level == options.IPPROTO_TCP and found.protocol != options.IPPROTO_TCP:
        raise KernelError(Errno.EOPNOTSUPP)
