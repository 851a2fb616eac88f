"""Control messages: the ancillary data of sendmsg and recvmsg.

Owns their format: descriptors between Unix sockets, and IPv6 header fields of UDP datagrams. Rules:
a message with a wrong size or an unknown type is EINVAL. What does not fit is truncated or omitted,
and the receiver is told; descriptors that do not fit are closed.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from wasmsand.abi.linux.context import CallContext
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.limits import CONTROL_BYTES_MAX, RIGHTS_PER_MESSAGE_MAX
from wasmsand.kernel.sockets.address import AF_INET6
from wasmsand.kernel.sockets.base import Socket
from wasmsand.kernel.sockets.datagram import DatagramSocket, Header
from wasmsand.kernel.sockets.options import (
    IPV6_HOPLIMIT,
    IPV6_RECVHOPLIMIT,
    IPV6_RECVTCLASS,
    IPV6_TCLASS,
    SOL_SOCKET,
)
from wasmsand.kernel.sockets.rights import Rights

_CONTROL: Final = Struct("<Iii")
"""struct cmsghdr: length, level, type."""
_RIGHTS: Final = (SOL_SOCKET, 1)
_CREDENTIALS: Final = (SOL_SOCKET, 2)
_INT: Final = 4


class Control(NamedTuple):
    """The decoded control messages of one sendmsg."""

    files: list[OpenFile]
    header: Header | None


NOTHING: Final = Control([], None)


def read_control(context: CallContext, found: Socket, address: int, length: int) -> Control:
    """Decode the control messages of a sendmsg."""
    if length > CONTROL_BYTES_MAX:
        raise KernelError(Errno.ENOBUFS)
    raw = context.memory.read(address, length)
    files: list[OpenFile] = []
    header: Header | None = None
    place = 0
    while place + _CONTROL.size <= length:
        size, *kind = _CONTROL.unpack_from(raw, place)
        if not _CONTROL.size <= size <= length - place:
            raise KernelError(Errno.EINVAL)
        body = raw[place + _CONTROL.size : place + size]
        if found.is_unix and tuple(kind) == _RIGHTS:
            for fd in memoryview(body[: len(body) // 4 * 4]).cast("I"):
                files.append(context.file_or_path(fd))
        elif isinstance(found, DatagramSocket) and found.family == AF_INET6:
            header = _changed(header or found.usual_header(), tuple(kind), body)
        elif not (found.is_unix and tuple(kind) == _CREDENTIALS):
            raise KernelError(Errno.EINVAL)
        place += (size + 3) & ~3
    if len(files) > RIGHTS_PER_MESSAGE_MAX:
        raise KernelError(Errno.EINVAL)
    return Control(files, header)


def _changed(header: Header, kind: tuple[int, ...], body: bytes) -> Header:
    value = int.from_bytes(body, "little", signed=True)
    if len(body) != _INT or not -1 <= value <= 255:
        raise KernelError(Errno.EINVAL)
    if kind not in (IPV6_HOPLIMIT, IPV6_TCLASS):
        raise KernelError(Errno.EINVAL)
    if value < 0:  # keep the default
        return header
    if kind == IPV6_HOPLIMIT:
        return header._replace(hop_limit=value)
    return header._replace(traffic_class=value)


def give_rights(
    context: CallContext, rights: Rights, address: int, room: int, *, close_on_exec: bool
) -> tuple[int, bool]:
    """Install received descriptors. Returns (bytes of control data, whether all fitted)."""
    fds = context.process.fds
    given: list[int] = []
    all_fit = True
    for file in rights.files:
        if _CONTROL.size + _INT * (len(given) + 1) > room:
            all_fit = False
            break
        try:
            given.append(fds.install(file, close_on_exec=close_on_exec))
        except KernelError:
            all_fit = False
            break
    rights.drop()
    if not given:
        return 0, all_fit
    body = b"".join([fd.to_bytes(_INT, "little") for fd in given])
    context.memory.write(address, _CONTROL.pack(_CONTROL.size + len(body), *_RIGHTS) + body)
    return _CONTROL.size + len(body), all_fit


def give_header(
    context: CallContext, found: Socket, header: Header, address: int, room: int
) -> tuple[int, bool]:
    """Write the header fields that the receiver has asked for. Returns (bytes, whether all
    fitted)."""
    wanted = [
        (kind, value)
        for option, kind, value in (
            (IPV6_RECVHOPLIMIT, IPV6_HOPLIMIT, header.hop_limit),
            (IPV6_RECVTCLASS, IPV6_TCLASS, header.traffic_class),
        )
        if found.option(option)
    ]
    used = 0
    for kind, value in wanted:
        size = min(_CONTROL.size + _INT, room - used)
        if size < _CONTROL.size:
            return used, False
        note = _CONTROL.pack(size, *kind) + value.to_bytes(_INT, "little")
        context.memory.write(address + used, note[:size])
        used += size
        if size < len(note):
            return used, False
    return used, True
