"""Sending and receiving: sendto, recvfrom, sendmsg, recvmsg.

Owns the socket calls that transfer data. Rules: the guest's buffers are checked before a message is
taken. A blocking send on a stream continues until everything is sent, and stores its progress.
EPIPE comes with SIGPIPE unless MSG_NOSIGNAL is set. Descriptors that do not fit are closed, and the
guest is told (MSG_CTRUNC).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from wasmsand.abi.linux.calls_socket import socket_at, timed
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.linux.control_messages import (
    NOTHING,
    Control,
    give_header,
    give_rights,
    read_control,
)
from wasmsand.abi.linux.socket_address import (
    pack_address,
    read_address,
    require_address_room,
    write_address,
)
from wasmsand.abi.transfers import gather, parts_of, scatter, vectors_at
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.limits import CONTROL_BYTES_MAX, IO_CHUNK, PIPE_CAPACITY, SOCKET_QUEUE_BYTES
from wasmsand.kernel.process.delivery import SI_KERNEL, post_to_thread
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.sockets import naming
from wasmsand.kernel.sockets.address import Address, UnixAddress
from wasmsand.kernel.sockets.base import Socket
from wasmsand.kernel.sockets.datagram import DatagramSocket, Header
from wasmsand.kernel.sockets.rights import Rights
from wasmsand.kernel.sockets.stream import StreamSocket
from wasmsand.kernel.wait import WouldBlock

_MSG_OOB: Final = 0x1
_MSG_PEEK: Final = 0x2
_MSG_CTRUNC: Final = 0x8
_MSG_TRUNC: Final = 0x20
_MSG_DONTWAIT: Final = 0x40
_MSG_WAITALL: Final = 0x100
_MSG_ERRQUEUE: Final = 0x2000
_MSG_NOSIGNAL: Final = 0x4000
_MSG_CMSG_CLOEXEC: Final = 0x4000_0000

_HEADER: Final = Struct("<7I")
"""struct msghdr: name, its length, vectors, their number, control, its length, flags."""

Vectors = list[tuple[int, int]]


class Received(NamedTuple):
    """The result of one receive."""

    size: int
    source: Address | None = None
    rights: Rights | None = None
    flags: int = 0
    header: Header | None = None


# Sending.


def sendto(
    context: CallContext, fd: int, buffer: int, count: int, flags: int, address: int, length: int
) -> int:
    """sendto(2)."""
    found = socket_at(context, fd)
    to = read_address(context, address, length, found.family) if address else None
    return _send(context, found, [(buffer, count)], flags, to, NOTHING)


def sendmsg(context: CallContext, fd: int, header: int, flags: int) -> int:
    """sendmsg(2)."""
    found = socket_at(context, fd)
    name, name_length, vectors, count, control, control_length, _ = context.memory.unpack(
        _HEADER, header
    )
    to = read_address(context, name, name_length, found.family) if name and name_length else None
    with_it = read_control(context, found, control, control_length) if control_length else NOTHING
    return _send(context, found, vectors_at(context, vectors, count), flags, to, with_it)


def _send(
    context: CallContext,
    found: Socket,
    vectors: Vectors,
    flags: int,
    to: Address | None,
    control: Control,
) -> int:
    if flags & _MSG_OOB and (found.is_unix or not isinstance(found, StreamSocket)):
        raise KernelError(Errno.EOPNOTSUPP)
    for start, length in vectors:
        context.memory.require(start, length)
    try:
        if isinstance(found, StreamSocket):
            if to is not None and found.is_unix:
                raise KernelError(Errno.EISCONN if found.is_connected else Errno.EOPNOTSUPP)
            sent = _send_stream(context, found, vectors, flags, control.files)
        else:
            assert isinstance(found, DatagramSocket)
            sent = _send_datagram(context, found, vectors, flags, to, control)
    except KernelError as error:
        if error.errno is Errno.EPIPE and not flags & _MSG_NOSIGNAL:
            post_to_thread(context.kernel, context.thread, SignalInfo(Signal.SIGPIPE, SI_KERNEL))
        raise
    return sent


def _send_stream(
    context: CallContext, found: StreamSocket, vectors: Vectors, flags: int, files: list[OpenFile]
) -> int:
    call = context.thread.call
    total = sum(length for _, length in vectors)
    done = call.done
    while True:
        data = gather(context, vectors, done, PIPE_CAPACITY)
        rights = _rights(context, files) if not done and data else None
        try:
            sent = timed(
                context,
                found.send_timeout_ns,
                lambda data=data, rights=rights, done=done: found.send(  # type: ignore[misc]
                    data,
                    rights,
                    urgent=bool(flags & _MSG_OOB) and done + len(data) == total,
                    nonblocking=bool(flags & _MSG_DONTWAIT),
                ),
            )
        except KernelError:
            _drop(rights)
            if done:
                return done
            raise
        except WouldBlock:
            _drop(rights)
            call.done = done
            raise
        done += sent
        if done >= total:
            return done


def _send_datagram(
    context: CallContext,
    found: DatagramSocket,
    vectors: Vectors,
    flags: int,
    to: Address | None,
    control: Control,
) -> int:
    if sum(length for _, length in vectors) > SOCKET_QUEUE_BYTES:
        raise KernelError(Errno.EMSGSIZE)
    target = naming.find(context.process, found, to) if to is not None else None
    data = gather(context, vectors)
    rights = _rights(context, control.files)
    nonblocking = bool(flags & _MSG_DONTWAIT)
    try:
        return timed(
            context,
            found.send_timeout_ns,
            lambda: found.send(data, to, target, rights, control.header, nonblocking=nonblocking),
        )
    except (KernelError, WouldBlock):
        _drop(rights)
        raise


def _rights(context: CallContext, files: list[OpenFile]) -> Rights | None:
    return Rights(context.kernel.network.rights, files) if files else None


def _drop(rights: Rights | None) -> None:
    if rights is not None:
        rights.drop()


# Receiving.


def recvfrom(
    context: CallContext, fd: int, buffer: int, count: int, flags: int, address: int, length_at: int
) -> int:
    """recvfrom(2)."""
    found = socket_at(context, fd)
    require_address_room(context, address, length_at)
    got = _receive(context, found, [(buffer, count)], flags)
    _drop(got.rights)
    if address:
        if _is_named(got.source):
            assert got.source is not None
            write_address(context, got.source, address, length_at)
        else:
            context.memory.write_u32(length_at, 0)
    return got.size


def recvmsg(context: CallContext, fd: int, header: int, flags: int) -> int:
    """recvmsg(2)."""
    found = socket_at(context, fd)
    memory = context.memory
    name, name_room, vectors, count, control, control_room, _ = memory.unpack(_HEADER, header)
    if name:
        memory.require(name, min(name_room, 128))
    if control:
        memory.require(control, min(control_room, CONTROL_BYTES_MAX))
    got = _receive(context, found, vectors_at(context, vectors, count), flags)
    raw = pack_address(got.source) if _is_named(got.source) and got.source is not None else b""
    if name:
        memory.write(name, raw[:name_room])
    memory.write_u32(header + 4, len(raw) if name else 0)
    told = got.flags | flags & _MSG_CMSG_CLOEXEC
    used, all_fit = 0, True
    room = control_room if control else 0
    if got.rights is not None:
        close_on_exec = bool(flags & _MSG_CMSG_CLOEXEC)
        used, all_fit = give_rights(context, got.rights, control, room, close_on_exec=close_on_exec)
    elif got.header is not None:
        used, all_fit = give_header(context, found, got.header, control, room)
    if not all_fit:
        told |= _MSG_CTRUNC
    memory.write_u32(header + 20, used)
    memory.write_u32(header + 24, told)
    return got.size


def _is_named(source: Address | None) -> bool:
    return source is not None and source != UnixAddress()


def _receive(context: CallContext, found: Socket, vectors: Vectors, flags: int) -> Received:
    if flags & _MSG_ERRQUEUE:
        raise KernelError(Errno.EAGAIN)
    for start, length in vectors:
        context.memory.require(start, length)
    if flags & _MSG_OOB and isinstance(found, StreamSocket):
        return _receive_urgent(context, found, vectors, flags)
    if isinstance(found, StreamSocket):
        return _receive_stream(context, found, vectors, flags)
    assert isinstance(found, DatagramSocket)
    return _receive_datagram(context, found, vectors, flags)


def _receive_urgent(
    context: CallContext, found: StreamSocket, vectors: Vectors, flags: int
) -> Received:
    byte = found.receive_urgent(peek=bool(flags & _MSG_PEEK))
    room = [(start, 1) for start, length in vectors if length][:1]
    scatter(context, room, byte[: len(room)])
    return Received(len(room), flags=_MSG_OOB if room else _MSG_OOB | _MSG_TRUNC)


def _receive_stream(
    context: CallContext, found: StreamSocket, vectors: Vectors, flags: int
) -> Received:
    call = context.thread.call
    total = sum(length for _, length in vectors)
    peek = bool(flags & _MSG_PEEK)
    wants_all = flags & _MSG_WAITALL and not peek
    done = call.done
    while True:
        size = min(total - done, IO_CHUNK)
        try:
            data, rights = timed(
                context,
                found.receive_timeout_ns,
                lambda size=size: found.receive(  # type: ignore[misc]
                    size, peek=peek, nonblocking=bool(flags & _MSG_DONTWAIT)
                ),
            )
        except KernelError:
            if done:
                return Received(done)
            raise
        except WouldBlock:
            call.done = done
            raise
        scatter(context, parts_of(vectors, done, size), data)
        done += len(data)
        if not wants_all or not data or rights is not None or done >= total:
            return Received(done, None, rights)


def _receive_datagram(
    context: CallContext, found: DatagramSocket, vectors: Vectors, flags: int
) -> Received:
    message = timed(
        context,
        found.receive_timeout_ns,
        lambda: found.receive(
            peek=bool(flags & _MSG_PEEK), nonblocking=bool(flags & _MSG_DONTWAIT)
        ),
    )
    if message is None:
        return Received(0)
    room = min(sum(length for _, length in vectors), len(message.data))
    scatter(context, parts_of(vectors, 0, room) if room else [], message.data[:room])
    cut = room < len(message.data)
    count = len(message.data) if flags & _MSG_TRUNC else room
    told = _MSG_TRUNC if cut else 0
    return Received(count, message.source, message.rights, told, message.header)
