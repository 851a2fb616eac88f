"""Sockets: creating, binding, connecting, options.

Owns the socket calls that transfer no data; those that do are in `calls_message`. Rules: handlers
only decode arguments and encode results; `kernel.sockets` decides which sockets exist and which
names they may have.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeVar

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.socket_address import read_address, require_address_room, write_address
from wasmsand.abi.transfers import deadline_after
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import O_CLOEXEC, O_NONBLOCK
from wasmsand.kernel.sockets import naming, options
from wasmsand.kernel.sockets.base import NOBODY, Socket
from wasmsand.kernel.sockets.creation import new_pair, new_socket
from wasmsand.kernel.sockets.datagram import DatagramSocket
from wasmsand.kernel.sockets.stream import StreamSocket
from wasmsand.kernel.wait import WouldBlock

Result = TypeVar("Result")

_TYPE_MASK: Final = 0xF
_TIMEVAL: Final = Struct("<qq")
_LINGER: Final = Struct("<ii")
_CREDENTIALS: Final = Struct("<iII")
_SOCK_FLAGS: Final = O_NONBLOCK | O_CLOEXEC


def socket_at(context: CallContext, fd: int) -> Socket:
    """The socket behind an fd; ENOTSOCK if it is not a socket."""
    file = context.file(fd)
    if not isinstance(file, Socket):
        raise KernelError(Errno.ENOTSOCK)
    return file


def _flags(kind: int) -> int:
    """The flags in the type argument of socket(2); EINVAL for unknown ones."""
    flags = kind & ~_TYPE_MASK
    if flags & ~_SOCK_FLAGS:
        raise KernelError(Errno.EINVAL)
    return flags


def socket(context: CallContext, domain: int, kind: int, protocol: int) -> int:
    """socket(2)."""
    flags = _flags(kind)
    owner = naming.owner_of(context.process)
    network = context.kernel.network
    made = new_socket(network, domain, kind & _TYPE_MASK, protocol, owner, flags)
    return context.process.fds.install(made, close_on_exec=bool(kind & O_CLOEXEC))


def socketpair(context: CallContext, domain: int, kind: int, protocol: int, address: int) -> int:
    """socketpair(2)."""
    context.memory.require(address, 8)
    flags = _flags(kind)
    owner = naming.owner_of(context.process)
    network = context.kernel.network
    one, two = new_pair(network, domain, kind & _TYPE_MASK, protocol, owner, flags)
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
    naming.bind(context.process, found, wanted)
    return 0


def listen(context: CallContext, fd: int, backlog: int) -> int:
    """listen(2)."""
    found = socket_at(context, fd)
    found.owner = naming.owner_of(context.process)
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
    if accepted.remote is not None:
        write_address(context, accepted.remote, address, length_at)
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
    found.owner = naming.owner_of(context.process)
    target = naming.find(context.process, found, wanted)
    timed(context, found.send_timeout_ns, lambda: found.connect(wanted, target))
    return 0


def getsockname(context: CallContext, fd: int, address: int, length_at: int) -> int:
    """getsockname(2)."""
    write_address(context, socket_at(context, fd).name(), address, length_at)
    return 0


def getpeername(context: CallContext, fd: int, address: int, length_at: int) -> int:
    """getpeername(2)."""
    found = socket_at(context, fd)
    if found.remote is None or (isinstance(found, StreamSocket) and not found.is_connected):
        raise KernelError(Errno.ENOTCONN)
    write_address(context, found.remote, address, length_at)
    return 0


def shutdown(context: CallContext, fd: int, how: int) -> int:
    """shutdown(2)."""
    found = socket_at(context, fd)
    if how > 2:
        raise KernelError(Errno.EINVAL)
    found.shutdown(how != 1, how != 0)
    return 0


def timed(context: CallContext, timeout_ns: int, attempt: Callable[[], Result]) -> Result:
    """Make an attempt; EAGAIN when all attempts together have waited for `timeout_ns` (SO_RCVTIMEO
    or SO_SNDTIMEO; 0 means no limit)."""
    try:
        return attempt()
    except WouldBlock as block:
        if not timeout_ns:
            raise
        deadline = deadline_after(context, timeout_ns)
        if deadline is None:
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
    return found.shown_option(option).to_bytes(4, "little", signed=True)
