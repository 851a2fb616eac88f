"""The table of system calls.

Owns the handler, the number of arguments and the status of each call; call numbers are in
`numbers.py`. `docs/syscalls.md` is generated from this table (`python scripts/syscall_table.py`).
Rules: a call that is not listed returns ENOSYS. Calls that the libc implements are listed so that
readers do not look for their handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast

from wasmsand.abi.linux import (
    calls_event,
    calls_fd,
    calls_identity,
    calls_io,
    calls_lock,
    calls_message,
    calls_path,
    calls_process,
    calls_scheduling,
    calls_signal,
    calls_socket,
    calls_splice,
    calls_system,
    calls_thread,
    calls_time,
    calls_tty,
)
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.compiled import COMPILED
from wasmsand.engine.protocol import Arguments

Handler = Callable[[CallContext, Arguments], int]


class Status(Enum):
    """How far a call is supported."""

    FULL = "full"
    PARTIAL = "partial"
    LIBC = "in the libc"
    ABSENT = "ENOSYS"


@dataclass(frozen=True, slots=True)
class SystemCall:
    """One row of the table."""

    number: CallNumber
    arguments: int
    function: Callable[..., int] | None
    status: Status = Status.FULL
    note: str = ""
    restarts: bool = False
    """Whether an interrupted call may be restarted (SA_RESTART)."""

    @property
    def name(self) -> str:
        """The name of the call on Linux."""
        return self.number.name.lower()


def _call(
    number: CallNumber,
    arguments: int,
    function: Callable[..., int],
    note: str = "",
    *,
    restarts: bool = False,
    status: Status | None = None,
) -> SystemCall:
    chosen = status or (Status.PARTIAL if note else Status.FULL)
    return SystemCall(number, arguments, function, chosen, note, restarts)


def _libc(number: CallNumber, note: str) -> SystemCall:
    return SystemCall(number, 0, None, Status.LIBC, note)


def _absent(number: CallNumber, note: str) -> SystemCall:
    return SystemCall(number, 0, None, Status.ABSENT, note)


SYSTEM_CALLS: Final[tuple[SystemCall, ...]] = (
    _call(CallNumber.GETCWD, 2, calls_path.getcwd),
    _call(CallNumber.EVENTFD2, 2, calls_event.eventfd2),
    _call(CallNumber.EPOLL_CREATE1, 1, calls_event.epoll_create1),
    _call(CallNumber.EPOLL_CTL, 4, calls_event.epoll_ctl),
    _call(CallNumber.EPOLL_PWAIT, 6, calls_event.epoll_pwait),
    _call(CallNumber.DUP, 1, calls_fd.dup),
    _call(CallNumber.DUP3, 3, calls_fd.dup3),
    _call(
        CallNumber.FCNTL64, 3, calls_fd.fcntl, "leases and owners are not supported", restarts=True
    ),
    _absent(CallNumber.INOTIFY_INIT1, "programs poll instead"),
    _call(
        CallNumber.IOCTL,
        3,
        calls_tty.ioctl,
        "supports terminals, FIONREAD, FIONBIO, FIOCLEX, SIOCGIF*",
        restarts=True,
    ),
    _call(CallNumber.FLOCK, 2, calls_lock.flock, restarts=True),
    _call(CallNumber.MKNODAT, 4, calls_path.mknodat),
    _call(CallNumber.MKDIRAT, 3, calls_path.mkdirat),
    _call(CallNumber.UNLINKAT, 3, calls_path.unlinkat),
    _call(CallNumber.SYMLINKAT, 3, calls_path.symlinkat),
    _call(CallNumber.LINKAT, 5, calls_path.linkat),
    _absent(CallNumber.UMOUNT2, "only the host mounts file systems"),
    _absent(CallNumber.MOUNT, "only the host mounts file systems"),
    _call(CallNumber.STATFS64, 3, calls_path.statfs),
    _call(CallNumber.FSTATFS64, 3, calls_path.fstatfs),
    _call(CallNumber.TRUNCATE64, 3, calls_path.truncate),
    _call(CallNumber.FTRUNCATE64, 3, calls_io.ftruncate),
    _call(CallNumber.FALLOCATE, 6, calls_io.fallocate),
    _call(CallNumber.FACCESSAT, 3, calls_path.faccessat),
    _call(CallNumber.CHDIR, 1, calls_path.chdir),
    _call(CallNumber.FCHDIR, 1, calls_path.fchdir),
    _call(CallNumber.CHROOT, 1, calls_path.chroot, "always EPERM"),
    _call(CallNumber.FCHMOD, 2, calls_path.fchmod),
    _call(CallNumber.FCHMODAT, 3, calls_path.fchmodat),
    _call(CallNumber.FCHOWNAT, 5, calls_path.fchownat),
    _call(CallNumber.FCHOWN, 3, calls_path.fchown),
    _call(CallNumber.OPENAT, 4, calls_fd.openat, restarts=True),
    _call(CallNumber.CLOSE, 1, calls_fd.close),
    _call(CallNumber.PIPE2, 2, calls_fd.pipe2),
    _call(CallNumber.GETDENTS64, 3, calls_fd.getdents64),
    _call(CallNumber._LLSEEK, 5, calls_io.llseek),
    _call(CallNumber.READ, 3, calls_io.read, restarts=True),
    _call(CallNumber.WRITE, 3, calls_io.write, restarts=True),
    _call(CallNumber.READV, 3, calls_io.readv, restarts=True),
    _call(CallNumber.WRITEV, 3, calls_io.writev, restarts=True),
    _call(CallNumber.PREAD64, 5, calls_io.pread),
    _call(CallNumber.PWRITE64, 5, calls_io.pwrite),
    _call(CallNumber.PREADV, 5, calls_io.preadv),
    _call(CallNumber.PWRITEV, 5, calls_io.pwritev),
    _call(CallNumber.SENDFILE64, 4, calls_io.sendfile),
    _call(
        CallNumber.SIGNALFD4,
        4,
        calls_event.signalfd4,
        "reads the signals of the thread that created it",
    ),
    _call(
        CallNumber.SPLICE,
        6,
        calls_splice.splice,
        "only pipes, regular files and simple devices",
        restarts=True,
    ),
    _call(CallNumber.READLINKAT, 4, calls_path.readlinkat),
    _call(CallNumber.SYNC, 0, calls_io.sync),
    _call(CallNumber.FSYNC, 1, calls_io.fsync),
    _call(CallNumber.FDATASYNC, 1, calls_io.fsync),
    _call(CallNumber.TIMERFD_CREATE, 2, calls_event.timerfd_create),
    _call(CallNumber.EXIT, 1, calls_thread.exit_thread),
    _call(CallNumber.EXIT_GROUP, 1, calls_process.exit_group),
    _call(CallNumber.WAITID, 5, calls_process.waitid, restarts=True),
    _call(CallNumber.SET_TID_ADDRESS, 1, calls_thread.set_tid_address),
    _call(CallNumber.GETITIMER, 2, calls_time.getitimer),
    _call(CallNumber.SETITIMER, 3, calls_time.setitimer),
    _absent(CallNumber.TIMER_CREATE, "POSIX timers are not supported"),
    _call(CallNumber.SCHED_SETPARAM, 2, calls_scheduling.sched_setparam),
    _call(
        CallNumber.SCHED_SETSCHEDULER,
        3,
        calls_scheduling.sched_setscheduler,
        "only ordinary policies",
    ),
    _call(CallNumber.SCHED_GETSCHEDULER, 1, calls_scheduling.sched_getscheduler),
    _call(CallNumber.SCHED_GETPARAM, 2, calls_scheduling.sched_getparam),
    _call(
        CallNumber.SCHED_SETAFFINITY,
        3,
        calls_scheduling.sched_setaffinity,
        "stored, without effect",
    ),
    _call(CallNumber.SCHED_GETAFFINITY, 3, calls_scheduling.sched_getaffinity),
    _call(CallNumber.SCHED_YIELD, 0, calls_scheduling.sched_yield),
    _call(CallNumber.SCHED_GET_PRIORITY_MAX, 1, calls_scheduling.sched_get_priority_max),
    _call(CallNumber.SCHED_GET_PRIORITY_MIN, 1, calls_scheduling.sched_get_priority_min),
    _call(CallNumber.KILL, 2, calls_signal.kill),
    _call(CallNumber.TKILL, 2, calls_signal.tkill),
    _call(CallNumber.TGKILL, 3, calls_signal.tgkill),
    _call(CallNumber.SIGALTSTACK, 2, calls_signal.sigaltstack, "accepted, without effect"),
    _call(CallNumber.RT_SIGSUSPEND, 2, calls_signal.rt_sigsuspend),
    _call(CallNumber.RT_SIGACTION, 4, calls_signal.rt_sigaction),
    _call(CallNumber.RT_SIGPROCMASK, 4, calls_signal.rt_sigprocmask),
    _call(CallNumber.RT_SIGPENDING, 2, calls_signal.rt_sigpending),
    _absent(CallNumber.RT_SIGQUEUEINFO, "signals are not queued"),
    _call(CallNumber.SETPRIORITY, 3, calls_scheduling.setpriority, "stored, without effect"),
    _call(CallNumber.GETPRIORITY, 2, calls_scheduling.getpriority),
    _call(CallNumber.SETREGID, 2, calls_identity.setregid),
    _call(CallNumber.SETGID, 1, calls_identity.setgid),
    _call(CallNumber.SETREUID, 2, calls_identity.setreuid),
    _call(CallNumber.SETUID, 1, calls_identity.setuid),
    _call(CallNumber.SETRESUID, 3, calls_identity.setresuid),
    _call(CallNumber.GETRESUID, 3, calls_identity.getresuid),
    _call(CallNumber.SETRESGID, 3, calls_identity.setresgid),
    _call(CallNumber.GETRESGID, 3, calls_identity.getresgid),
    _call(CallNumber.TIMES, 1, calls_time.times),
    _call(CallNumber.SETPGID, 2, calls_process.setpgid),
    _call(CallNumber.GETPGID, 1, calls_process.getpgid),
    _call(CallNumber.GETSID, 1, calls_process.getsid),
    _call(CallNumber.SETSID, 0, calls_process.setsid),
    _call(CallNumber.GETGROUPS, 2, calls_identity.getgroups),
    _call(CallNumber.SETGROUPS, 2, calls_identity.setgroups),
    _call(CallNumber.UNAME, 1, calls_system.uname),
    _call(CallNumber.SETHOSTNAME, 2, calls_system.sethostname),
    _call(CallNumber.GETRUSAGE, 2, calls_system.getrusage),
    _call(CallNumber.UMASK, 1, calls_path.umask),
    _call(
        CallNumber.PRCTL,
        2,
        calls_process.prctl,
        "only PR_SET_NAME, PR_GET_NAME, PR_SET_DUMPABLE, PR_GET_DUMPABLE",
    ),
    _call(CallNumber.GETCPU, 2, calls_system.getcpu),
    _call(CallNumber.GETPID, 0, calls_process.getpid),
    _call(CallNumber.GETPPID, 0, calls_process.getppid),
    _call(CallNumber.GETUID, 0, calls_identity.getuid),
    _call(CallNumber.GETEUID, 0, calls_identity.geteuid),
    _call(CallNumber.GETGID, 0, calls_identity.getgid),
    _call(CallNumber.GETEGID, 0, calls_identity.getegid),
    _call(CallNumber.GETTID, 0, calls_thread.gettid),
    _call(CallNumber.SYSINFO, 1, calls_system.sysinfo),
    _call(
        CallNumber.SOCKET, 3, calls_socket.socket, "Unix sockets; IPv4 and IPv6 inside the sandbox"
    ),
    _call(CallNumber.SOCKETPAIR, 4, calls_socket.socketpair, "only streams and datagrams"),
    _call(CallNumber.BIND, 3, calls_socket.bind),
    _call(CallNumber.LISTEN, 2, calls_socket.listen),
    _call(CallNumber.ACCEPT, 3, calls_socket.accept, restarts=True),
    _call(CallNumber.CONNECT, 3, calls_socket.connect, restarts=True),
    _call(CallNumber.GETSOCKNAME, 3, calls_socket.getsockname),
    _call(CallNumber.GETPEERNAME, 3, calls_socket.getpeername),
    _call(CallNumber.SENDTO, 6, calls_message.sendto, restarts=True),
    _call(CallNumber.RECVFROM, 6, calls_message.recvfrom, restarts=True),
    _call(
        CallNumber.SETSOCKOPT,
        5,
        calls_socket.setsockopt,
        "options without effect in a sandbox are stored",
    ),
    _call(CallNumber.GETSOCKOPT, 5, calls_socket.getsockopt),
    _call(CallNumber.SHUTDOWN, 2, calls_socket.shutdown),
    _call(
        CallNumber.SENDMSG,
        3,
        calls_message.sendmsg,
        "ancillary data: SCM_RIGHTS, IPV6_HOPLIMIT, IPV6_TCLASS",
        restarts=True,
    ),
    _call(
        CallNumber.RECVMSG,
        3,
        calls_message.recvmsg,
        "ancillary data: SCM_RIGHTS, IPV6_HOPLIMIT, IPV6_TCLASS",
        restarts=True,
    ),
    _libc(CallNumber.BRK, "the libc uses memory.grow"),
    _libc(CallNumber.MUNMAP, "the libc keeps a free list"),
    _call(
        CallNumber.CLONE,
        5,
        calls_process.clone,
        "only vfork and threads; fork is a separate import",
    ),
    _call(CallNumber.EXECVE, 3, calls_process.execve),
    _libc(
        CallNumber.MMAP, "anonymous and private mappings; shared file mappings are copies (L013)"
    ),
    _call(CallNumber.FADVISE64_64, 1, calls_io.fadvise, "accepted, without effect"),
    _libc(CallNumber.MPROTECT, "linear memory has no page protection"),
    _call(CallNumber.ACCEPT4, 4, calls_socket.accept4, restarts=True),
    _call(CallNumber.WAIT4, 4, calls_process.wait4, restarts=True),
    _call(
        CallNumber.PRLIMIT64,
        4,
        calls_system.prlimit64,
        "enforces only CPU, FSIZE, NPROC, NOFILE and AS",
    ),
    _call(CallNumber.SYNCFS, 1, calls_io.fsync),
    _call(CallNumber.RENAMEAT2, 5, calls_path.renameat2),
    _call(CallNumber.GETRANDOM, 3, calls_system.getrandom),
    _call(CallNumber.MEMFD_CREATE, 2, calls_fd.memfd_create, "no seals"),
    _call(CallNumber.EXECVEAT, 5, calls_process.execveat),
    _call(CallNumber.COPY_FILE_RANGE, 6, calls_io.copy_file_range),
    _call(CallNumber.PREADV2, 6, calls_io.preadv2, "RWF_NOWAIT has no effect"),
    _call(CallNumber.PWRITEV2, 6, calls_io.pwritev2, "no RWF_APPEND, no RWF_NOWAIT"),
    _call(CallNumber.STATX, 5, calls_path.statx),
    _call(CallNumber.CLOCK_GETTIME64, 2, calls_time.clock_gettime),
    _call(CallNumber.CLOCK_SETTIME64, 2, calls_time.clock_settime, "always EPERM"),
    _call(CallNumber.CLOCK_GETRES_TIME64, 2, calls_time.clock_getres),
    _call(CallNumber.CLOCK_NANOSLEEP_TIME64, 4, calls_time.clock_nanosleep),
    _call(CallNumber.TIMERFD_GETTIME64, 2, calls_event.timerfd_gettime),
    _call(CallNumber.TIMERFD_SETTIME64, 4, calls_event.timerfd_settime),
    _call(CallNumber.UTIMENSAT_TIME64, 4, calls_path.utimensat),
    _call(CallNumber.PSELECT6_TIME64, 6, calls_time.pselect6),
    _call(CallNumber.PPOLL_TIME64, 5, calls_time.ppoll),
    _call(CallNumber.RT_SIGTIMEDWAIT_TIME64, 4, calls_signal.rt_sigtimedwait),
    _call(
        CallNumber.FUTEX_TIME64,
        6,
        calls_thread.futex,
        "no priority inheritance; only within one process",
        restarts=True,
    ),
    _call(CallNumber.SCHED_RR_GET_INTERVAL_TIME64, 2, calls_scheduling.sched_rr_get_interval),
    _call(CallNumber.PIDFD_SEND_SIGNAL, 4, calls_event.pidfd_send_signal),
    _call(CallNumber.PIDFD_OPEN, 2, calls_event.pidfd_open),
    _call(CallNumber.CLOSE_RANGE, 3, calls_fd.close_range),
    _call(CallNumber.FACCESSAT2, 4, calls_path.faccessat2),
    _call(CallNumber.FCHMODAT2, 4, calls_path.fchmodat2),
    _call(
        CallNumber.STARTUP_SIZE,
        0,
        calls_process.startup_size,
        status=Status.FULL,
        note="specific to wasmsand: size of arguments and environment",
    ),
    _call(
        CallNumber.STARTUP_FILL,
        2,
        calls_process.startup_fill,
        status=Status.FULL,
        note="specific to wasmsand: copy arguments and environment",
    ),
    _call(
        CallNumber.SIGNAL_TAKE,
        1,
        calls_signal.signal_take,
        status=Status.FULL,
        note="specific to wasmsand: enter a signal handler",
    ),
    _call(
        CallNumber.SIGNAL_RETURN,
        1,
        calls_signal.signal_return,
        status=Status.FULL,
        note="specific to wasmsand: leave a signal handler",
    ),
    _call(
        CallNumber.CHECKPOINT,
        2,
        calls_process.checkpoint,
        status=Status.FULL,
        note="specific to wasmsand: store the memory of a prepared program when an image is built; "
        "wait with an empty stack",
    ),
    _call(
        CallNumber.READ_UNTIL,
        4,
        calls_io.read_until,
        status=Status.FULL,
        note="specific to wasmsand: read up to a delimiter from a pipe or a regular file",
        restarts=True,
    ),
)


def _with_its_arguments(call: SystemCall) -> Handler:
    """Adapts a handler to the number of arguments of its call."""
    if COMPILED is not None:
        return cast(Handler, COMPILED.adapter(call.function, call.arguments))
    fn: Any = call.function
    adapters: tuple[Handler, ...] = (
        lambda x, v: fn(x),
        lambda x, v: fn(x, v.a),
        lambda x, v: fn(x, v.a, v.b),
        lambda x, v: fn(x, v.a, v.b, v.c),
        lambda x, v: fn(x, v.a, v.b, v.c, v.d),
        lambda x, v: fn(x, v.a, v.b, v.c, v.d, v.e),
        lambda x, v: fn(x, v.a, v.b, v.c, v.d, v.e, v.f),
    )
    return adapters[call.arguments]


HANDLERS: Final[dict[int, Handler]] = {
    int(call.number): _with_its_arguments(call)
    for call in SYSTEM_CALLS
    if call.function is not None
}
RESTARTABLE: Final[frozenset[int]] = frozenset(int(c.number) for c in SYSTEM_CALLS if c.restarts)
