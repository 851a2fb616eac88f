"""Waiting: poll_oneoff.

Rules: a subscription that cannot be waited for yields an event with its error at once. A timeout
counts from the first attempt, so that retries do not extend it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from wasmsand.abi.wasi.calls_clock import MONOTONIC, REALTIME
from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.errno import error_number
from wasmsand.abi.wasi.rights import Right
from wasmsand.abi.wasi.structs import EVENT, SUBSCRIPTION, SUBSCRIPTION_UNSTABLE
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.available import readable_bytes
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.pipe import PipeEnd
from wasmsand.kernel.files.polling import poll
from wasmsand.kernel.flags import POLLERR, POLLHUP, POLLIN, POLLOUT
from wasmsand.kernel.limits import PIPE_CAPACITY, POLL_FDS_MAX
from wasmsand.kernel.wait import WouldBlock

_CLOCK, _FD_READ, _FD_WRITE = range(3)
_ABSOLUTE_TIME: Final = 1
_HANGUP: Final = 1
_READ_RIGHTS: Final = Right.POLL_FD_READWRITE | Right.FD_READ
_WRITE_RIGHTS: Final = Right.POLL_FD_READWRITE | Right.FD_WRITE


class _Clock(NamedTuple):
    """A clock subscription."""

    userdata: int
    deadline: int
    """On the monotonic clock."""


class _File(NamedTuple):
    """A file subscription."""

    userdata: int
    kind: int
    file: OpenFile


def poll_oneoff(
    context: WasiContext, subscriptions: int, events: int, count: int, result: int
) -> int:
    """Wait until at least one subscription has an event."""
    return _poll(context, SUBSCRIPTION, subscriptions, events, count, result)


def poll_oneoff_unstable(
    context: WasiContext, subscriptions: int, events: int, count: int, result: int
) -> int:
    """The same for subscriptions in the layout of wasi_unstable."""
    return _poll(context, SUBSCRIPTION_UNSTABLE, subscriptions, events, count, result)


def _poll(
    context: WasiContext, layout: Struct, subscriptions: int, events: int, count: int, result: int
) -> int:
    memory = context.memory
    if not 0 < count <= POLL_FDS_MAX:
        raise KernelError(Errno.EINVAL)
    memory.require(events, EVENT.size * count)
    memory.require(result, 4)
    raw = memory.read(subscriptions, layout.size * count)
    now = context.kernel.clock.monotonic()
    call = context.thread.call
    started = now if call.started is None else call.started
    clocks: list[_Clock] = []
    files: list[_File] = []
    found: list[bytes] = []
    for place in range(0, len(raw), layout.size):
        userdata, kind, *rest = layout.unpack_from(raw, place)
        try:
            if kind == _CLOCK:
                clocks.append(_clock(context, started, now, userdata, rest))
            else:
                files.append(_file(context, userdata, kind, rest[0] & 0xFFFF_FFFF))
        except KernelError as error:
            found.append(EVENT.pack(userdata, error_number(error), kind, 0, 0))
    deadline = min((clock.deadline for clock in clocks), default=None)
    if found:
        deadline = now  # check the others, but do not wait
    wanted = [(entry.file, POLLIN if entry.kind == _FD_READ else POLLOUT) for entry in files]
    try:
        bits = poll(wanted, now=now, deadline=deadline)
    except WouldBlock:
        call.started = started
        raise
    found += [_event(entry, bit) for entry, bit in zip(files, bits, strict=True) if bit]
    found += [
        EVENT.pack(clock.userdata, 0, _CLOCK, 0, 0) for clock in clocks if clock.deadline <= now
    ]
    memory.write(events, b"".join(found))
    memory.write_u32(result, len(found))
    return 0


def _clock(context: WasiContext, started: int, now: int, userdata: int, rest: list[int]) -> _Clock:
    clock, timeout, _, flags = rest[-4:]
    if flags & ~_ABSOLUTE_TIME or clock not in (REALTIME, MONOTONIC):
        raise KernelError(Errno.EINVAL)
    if not flags:
        return _Clock(userdata, started + timeout)
    if clock == REALTIME:
        timeout += now - context.kernel.clock.realtime()
    return _Clock(userdata, timeout)


def _file(context: WasiContext, userdata: int, kind: int, fd: int) -> _File:
    if kind not in (_FD_READ, _FD_WRITE):
        raise KernelError(Errno.EINVAL)
    descriptor = context.descriptors.get(fd)
    descriptor.require(_READ_RIGHTS if kind == _FD_READ else _WRITE_RIGHTS, Errno.EINVAL)
    return _File(userdata, kind, descriptor.file)


def _event(entry: _File, bits: int) -> bytes:
    file = entry.file
    if entry.kind == _FD_READ:
        try:
            size = readable_bytes(file)
        except KernelError:  # a device, which is always readable
            size = PIPE_CAPACITY
    else:
        size = file.pipe.room() if isinstance(file, PipeEnd) else PIPE_CAPACITY
    flags = _HANGUP if bits & (POLLHUP | POLLERR) else 0
    return EVENT.pack(entry.userdata, 0, entry.kind, size, flags)
