"""Event files: epoll, eventfd, timerfd, signalfd, pidfd.

Owns the calls that create and use them.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeVar

from wasmsand.abi.linux.calls_signal import (
    replace_mask_while_waiting,
    restore_mask_after_waiting,
)
from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.structs import ITIMERSPEC
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.epoll import EpollFile
from wasmsand.kernel.files.event import EventFile
from wasmsand.kernel.files.process_file import ProcessFile
from wasmsand.kernel.files.signal_file import SignalFile
from wasmsand.kernel.files.timer import TimerFile
from wasmsand.kernel.flags import O_CLOEXEC, O_NONBLOCK
from wasmsand.kernel.limits import POLL_FDS_MAX
from wasmsand.kernel.process.delivery import kill
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import UNBLOCKABLE
from wasmsand.kernel.vfs import ProcFs

_File = TypeVar("_File", bound=OpenFile)

_EVENT: Final = Struct("<I4xQ")
_ADD, _DELETE, _MODIFY = 1, 2, 3
_EFD_SEMAPHORE: Final = 1
_PRIVATE: Final = 0o600
"""The mode that fstat shows for these files."""
_MILLISECOND: Final = SECOND // 1000
_REALTIME, _MONOTONIC, _BOOTTIME = 0, 1, 7
_TIMER_ABSTIME: Final = 1
_TIMER_CANCEL_ON_SET: Final = 2
_MASK_BYTES: Final = 8


def _install(context: CallContext, file: OpenFile, flags: int) -> int:
    return context.process.fds.install(file, close_on_exec=bool(flags & O_CLOEXEC))


# epoll


def epoll_create1(context: CallContext, flags: int) -> int:
    """epoll_create1(2)."""
    if flags & ~O_CLOEXEC:
        raise KernelError(Errno.EINVAL)
    kernel = context.kernel
    return _install(context, EpollFile(kernel.anonymous.new(_PRIVATE), kernel.watches), flags)


def _file(context: CallContext, fd: int, kind: type[_File]) -> _File:
    """The open file behind a descriptor; EINVAL if it has another type."""
    file = context.file(fd)
    if not isinstance(file, kind):
        raise KernelError(Errno.EINVAL)
    return file


def epoll_ctl(context: CallContext, epoll_fd: int, operation: int, fd: int, event: int) -> int:
    """epoll_ctl(2)."""
    events = data = 0
    if operation != _DELETE:
        events, data = context.memory.unpack(_EVENT, event)
    file = context.file(fd)
    epoll = _file(context, epoll_fd, EpollFile)
    if file is epoll:
        raise KernelError(Errno.EINVAL)
    if operation == _ADD:
        epoll.add(fd, file, events, data)
    elif operation == _MODIFY:
        epoll.modify(fd, file, events, data)
    elif operation == _DELETE:
        epoll.remove(fd, file)
    else:
        raise KernelError(Errno.EINVAL)
    return 0


def epoll_pwait(
    context: CallContext, fd: int, address: int, most: int, timeout: int, mask: int, size: int
) -> int:
    """epoll_pwait(2)."""
    epoll = _file(context, fd, EpollFile)
    most = signed(most)
    if most <= 0:
        raise KernelError(Errno.EINVAL)
    most = min(most, POLL_FDS_MAX)
    context.memory.require(address, most * _EVENT.size)
    now = context.kernel.clock.monotonic()
    milliseconds = signed(timeout)
    deadline = context.thread.call.deadline
    if milliseconds >= 0 and deadline is None:
        deadline = now + milliseconds * _MILLISECOND
    if mask:
        replace_mask_while_waiting(context, mask, size)
    found = epoll.wait(most, now=now, deadline=deadline)
    context.memory.write(address, b"".join([_EVENT.pack(*event) for event in found]))
    if mask:
        restore_mask_after_waiting(context)
    return len(found)


# eventfd


def eventfd2(context: CallContext, count: int, flags: int) -> int:
    """eventfd2(2)."""
    if flags & ~(O_CLOEXEC | O_NONBLOCK | _EFD_SEMAPHORE):
        raise KernelError(Errno.EINVAL)
    file = EventFile(
        count,
        flags & O_NONBLOCK,
        context.kernel.anonymous.new(_PRIVATE),
        semaphore=bool(flags & _EFD_SEMAPHORE),
    )
    return _install(context, file, flags)


# timerfd


def timerfd_create(context: CallContext, clock: int, flags: int) -> int:
    """timerfd_create(2)."""
    if flags & ~(O_CLOEXEC | O_NONBLOCK) or clock not in (_REALTIME, _MONOTONIC, _BOOTTIME):
        raise KernelError(Errno.EINVAL)
    kernel = context.kernel
    file = TimerFile(
        clock, flags & O_NONBLOCK, kernel.anonymous.new(_PRIVATE), kernel.timer_files.cancel
    )
    return _install(context, file, flags)


def timerfd_settime(context: CallContext, fd: int, flags: int, new: int, old: int) -> int:
    """timerfd_settime64(2)."""
    if flags & ~(_TIMER_ABSTIME | _TIMER_CANCEL_ON_SET):
        raise KernelError(Errno.EINVAL)
    timer = _file(context, fd, TimerFile)
    interval = context.timespec(new)
    value = context.timespec(new + ITIMERSPEC.size // 2)
    if old:
        _write_setting(context, timer, old)
    kernel = context.kernel
    deadline = 0
    if value:
        now = kernel.clock.monotonic()
        base = now
        if flags & _TIMER_ABSTIME:
            base = now - kernel.clock.realtime() if timer.clock == _REALTIME else 0
        deadline = max(base + value, 1)
    timer.arm(deadline, interval)
    if deadline:
        kernel.timer_files.set(timer, deadline)
        kernel.timer_armed(deadline)
    return 0


def timerfd_gettime(context: CallContext, fd: int, address: int) -> int:
    """timerfd_gettime64(2)."""
    _write_setting(context, _file(context, fd, TimerFile), address)
    return 0


def _write_setting(context: CallContext, timer: TimerFile, address: int) -> None:
    left = 0
    if timer.deadline:
        left = max(1, timer.deadline - context.kernel.clock.monotonic())
    context.memory.pack(ITIMERSPEC, address, *divmod(timer.interval, SECOND), *divmod(left, SECOND))


# signalfd


def signalfd4(context: CallContext, fd: int, mask: int, size: int, flags: int) -> int:
    """signalfd4(2). If an fd is given, replace that signalfd's mask."""
    if size != _MASK_BYTES or flags & ~(O_CLOEXEC | O_NONBLOCK):
        raise KernelError(Errno.EINVAL)
    wanted = context.memory.read_u64(mask) & ~UNBLOCKABLE
    if signed(fd) == -1:
        stat = context.kernel.anonymous.new(_PRIVATE)
        return _install(
            context, SignalFile(context.thread, wanted, flags & O_NONBLOCK, stat), flags
        )
    file = context.file(fd)
    if not isinstance(file, SignalFile):
        raise KernelError(Errno.EINVAL)
    file.wanted = wanted
    for queue in file.queues():
        queue.wake()
    return fd


# pidfd


def pidfd_open(context: CallContext, pid: int, flags: int) -> int:
    """pidfd_open(2)."""
    if flags & ~O_NONBLOCK or signed(pid) <= 0:
        raise KernelError(Errno.EINVAL)
    process = context.kernel.processes.get(signed(pid))
    file = ProcessFile(process, flags, context.kernel.anonymous.new(_PRIVATE))
    return _install(context, file, O_CLOEXEC)


def pidfd_send_signal(context: CallContext, fd: int, signo: int, info: int, flags: int) -> int:
    """pidfd_send_signal(2): to the process of a pidfd, or of a /proc/PID directory."""
    process = _process_of(context, context.file(fd))
    if flags or info:
        raise KernelError(Errno.EINVAL)
    if process is None or context.kernel.processes.find(process.pid) is not process:
        raise KernelError(Errno.ESRCH)
    kill(context.kernel, context.process, process.pid, signed(signo))
    return 0


def _process_of(context: CallContext, file: OpenFile) -> Process | None:
    if isinstance(file, ProcessFile):
        return file.process
    node = file.node
    pid = node.fs.process_of(node.ino) if node and isinstance(node.fs, ProcFs) else None
    if pid is None:
        raise KernelError(Errno.EBADF)
    return context.kernel.processes.find(pid)
