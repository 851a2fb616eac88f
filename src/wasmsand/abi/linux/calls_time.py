"""Clocks, sleeps, timers, poll and select.

Owns the calls that read clocks or wait for a time. Rules: a timeout becomes an absolute deadline at
the first attempt, so that retries do not extend it.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.linux.calls_signal import (
    replace_mask_while_waiting,
    restore_mask_after_waiting,
)
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.linux.structs import (
    POLLFD,
    SIGNAL_MASK_ARGUMENT,
    TIMESPEC,
    TIMEVAL_PAIR,
    TMS,
)
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.polling import poll
from wasmsand.kernel.flags import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLPRI,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.limits import POLL_FDS_MAX
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.timers import (
    cpu_timer,
    real_timer,
    set_cpu_timer,
    set_real_timer,
)
from wasmsand.kernel.wait import WouldBlock

_REALTIME, _MONOTONIC, _PROCESS_CPU, _THREAD_CPU, _MONOTONIC_RAW = range(5)
_REALTIME_COARSE, _MONOTONIC_COARSE, _BOOTTIME = 5, 6, 7
_TIMER_ABSTIME: Final = 1
_ITIMER_REAL: Final = 0
_ITIMER_SIGNALS: Final = (Signal.SIGALRM, Signal.SIGVTALRM, Signal.SIGPROF)
"""The signal of each timer. The second and third count CPU time, which is all user time."""
_TICKS_PER_SECOND: Final = 100
_TICK: Final = SECOND // _TICKS_PER_SECOND
_READ_BITS: Final = POLLIN | POLLRDNORM | POLLHUP | POLLERR
_WRITE_BITS: Final = POLLOUT | POLLWRNORM | POLLERR


def _now(context: CallContext, clock: int) -> int:
    if clock in (_REALTIME, _REALTIME_COARSE):
        return context.kernel.clock.realtime()
    if clock in (_MONOTONIC, _MONOTONIC_RAW, _MONOTONIC_COARSE, _BOOTTIME):
        return context.kernel.clock.monotonic()
    if clock in (_PROCESS_CPU, _THREAD_CPU):
        return context.cpu_time_ns()
    raise KernelError(Errno.EINVAL)


def clock_gettime(context: CallContext, clock: int, address: int) -> int:
    """clock_gettime64(2)."""
    now = _now(context, clock)
    context.memory.write(address, TIMESPEC.pack(now // SECOND, now % SECOND))
    return 0


def clock_getres(context: CallContext, clock: int, address: int) -> int:
    """clock_getres_time64(2)."""
    _now(context, clock)
    if address:
        context.memory.pack(TIMESPEC, address, 0, 1)
    return 0


def clock_settime(context: CallContext, clock: int, address: int) -> int:
    """clock_settime64(2): always EPERM; guests cannot set the clock."""
    _now(context, clock)
    context.memory.unpack(TIMESPEC, address)
    raise KernelError(Errno.EPERM)


def clock_nanosleep(
    context: CallContext, clock: int, flags: int, request: int, remaining: int
) -> int:
    """clock_nanosleep_time64(2)."""
    monotonic = context.kernel.clock.monotonic()
    deadline = context.thread.call.deadline
    if deadline is None:
        now = _now(context, clock)
        duration = context.timespec(request)
        if flags & _TIMER_ABSTIME:
            duration -= now
        elif clock in (_THREAD_CPU, _PROCESS_CPU):
            raise KernelError(Errno.EOPNOTSUPP)
        deadline = monotonic + max(0, duration)
    left = deadline - monotonic
    if left <= 0:
        return 0
    if remaining and not flags & _TIMER_ABSTIME:
        # Written now, because an interrupted call does not return here.
        context.memory.pack(TIMESPEC, remaining, *divmod(left, SECOND))
    raise WouldBlock((), deadline)


def setitimer(context: CallContext, which: int, new: int, old: int) -> int:
    """setitimer(2)."""
    if which >= len(_ITIMER_SIGNALS):
        raise KernelError(Errno.EINVAL)
    if old:
        context.memory.require(old, TIMEVAL_PAIR.size)
    every_s, every_us, value_s, value_us = context.memory.unpack(TIMEVAL_PAIR, new)
    if min(every_s, every_us, value_s, value_us) < 0 or max(every_us, value_us) >= 1_000_000:
        raise KernelError(Errno.EINVAL)
    value, every = value_s * SECOND + value_us * 1000, every_s * SECOND + every_us * 1000
    if which == _ITIMER_REAL:
        previous = set_real_timer(context.kernel, context.process, value, every)
    else:
        signal = _ITIMER_SIGNALS[which]
        previous = set_cpu_timer(context.process, signal, context.cpu_time_ns(), value, every)
    if old:
        _write_timer(context, old, *previous)
    return 0


def getitimer(context: CallContext, which: int, address: int) -> int:
    """getitimer(2)."""
    if which >= len(_ITIMER_SIGNALS):
        raise KernelError(Errno.EINVAL)
    if which == _ITIMER_REAL:
        left = real_timer(context.kernel, context.process)
    else:
        left = cpu_timer(context.process, _ITIMER_SIGNALS[which], context.cpu_time_ns())
    _write_timer(context, address, *left)
    return 0


def _write_timer(context: CallContext, address: int, remaining: int, interval: int) -> None:
    every_us, left_us = interval // 1000, -(-remaining // 1000)
    context.memory.pack(
        TIMEVAL_PAIR, address, *divmod(every_us, 1_000_000), *divmod(left_us, 1_000_000)
    )


def times(context: CallContext, address: int) -> int:
    """times(2)."""
    process = context.process
    children = process.children_usage
    if address:
        context.memory.pack(
            TMS,
            address,
            context.cpu_time_ns() // _TICK & 0x7FFF_FFFF,
            0,
            children.user_ns // _TICK & 0x7FFF_FFFF,
            children.system_ns // _TICK & 0x7FFF_FFFF,
        )
    return context.kernel.clock.uptime() // _TICK & 0x7FFF_FFFF


def _deadline(context: CallContext, timeout: int) -> int | None:
    deadline = context.thread.call.deadline
    if timeout and deadline is None:
        deadline = context.kernel.clock.monotonic() + context.timespec(timeout)
    return deadline


def ppoll(
    context: CallContext, address: int, count: int, timeout: int, mask: int, mask_size: int
) -> int:
    """ppoll_time64(2)."""
    if count > POLL_FDS_MAX:
        raise KernelError(Errno.EINVAL)
    deadline = _deadline(context, timeout)
    if mask:
        replace_mask_while_waiting(context, mask, mask_size)
    raw = bytearray(context.memory.read(address, POLLFD.size * count))
    wanted: list[tuple[OpenFile | None, int]] = []
    places: list[int] = []
    for place in range(0, len(raw), POLLFD.size):
        fd, events, _ = POLLFD.unpack_from(raw, place)
        POLLFD.pack_into(raw, place, fd, events, 0)
        if fd >= 0:
            wanted.append((_file_or_none(context, fd), events & 0xFFFF))
            places.append(place)
    bits = poll(wanted, now=context.kernel.clock.monotonic(), deadline=deadline)
    ready = 0
    for place, result in zip(places, bits, strict=True):
        if result:
            ready += 1
            fd, events, _ = POLLFD.unpack_from(raw, place)
            POLLFD.pack_into(raw, place, fd, events, result)
    context.memory.write(address, raw)
    _finish_wait(context, mask)
    return ready


def _file_or_none(context: CallContext, fd: int) -> OpenFile | None:
    try:
        return context.file(fd)
    except KernelError:
        return None


def _finish_wait(context: CallContext, mask: int) -> None:
    if mask:
        restore_mask_after_waiting(context)


def pselect6(
    context: CallContext,
    count: int,
    read: int,
    write: int,
    other: int,
    timeout: int,
    mask_argument: int,
) -> int:
    """pselect6_time64(2)."""
    if count > POLL_FDS_MAX:
        raise KernelError(Errno.EINVAL)
    deadline = _deadline(context, timeout)
    mask = 0
    if mask_argument:
        mask, mask_size = context.memory.unpack(SIGNAL_MASK_ARGUMENT, mask_argument)
        if mask:
            replace_mask_while_waiting(context, mask, mask_size)
    size = (count + 31) // 32 * 4
    sets = [
        int.from_bytes(context.memory.read(address, size), "little") if address else 0
        for address in (read, write, other)
    ]
    wanted: list[tuple[OpenFile | None, int]] = []
    fds: list[int] = []
    for fd in range(count):
        events = (
            (POLLIN | POLLRDNORM if sets[0] >> fd & 1 else 0)
            | (POLLOUT | POLLWRNORM if sets[1] >> fd & 1 else 0)
            | (POLLPRI if sets[2] >> fd & 1 else 0)
        )
        if events:
            wanted.append((context.file(fd), events))
            fds.append(fd)
    bits = poll(wanted, now=context.kernel.clock.monotonic(), deadline=deadline)
    found = [0, 0, 0]
    for fd, result in zip(fds, bits, strict=True):
        for index, interesting in enumerate((_READ_BITS, _WRITE_BITS, POLLPRI)):
            if sets[index] >> fd & 1 and result & interesting:
                found[index] |= 1 << fd
    ready = sum(bits.bit_count() for bits in found)
    for address, bits_found in zip((read, write, other), found, strict=True):
        if address:
            context.memory.write(address, bits_found.to_bytes(size, "little"))
    _finish_wait(context, mask)
    return ready
