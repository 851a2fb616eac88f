"""The one table of system calls.

Owns which number is which call, its handler, its arity and its status in words.
`docs/syscalls.md` is generated from it (`python scripts/syscall_table.py`). Rules: a
call that is not here is ENOSYS; a call done by the libc is listed so that nobody
looks for its handler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

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
    """One row."""

    number: int
    name: str
    arguments: int
    function: Callable[..., int] | None
    status: Status = Status.FULL
    note: str = ""
    restarts: bool = False
    """An interrupted call may be restarted (SA_RESTART)."""


def _call(
    number: int,
    name: str,
    arguments: int,
    function: Callable[..., int],
    note: str = "",
    *,
    restarts: bool = False,
    status: Status | None = None,
) -> SystemCall:
    chosen = status or (Status.PARTIAL if note else Status.FULL)
    return SystemCall(number, name, arguments, function, chosen, note, restarts)


def _libc(number: int, name: str, note: str) -> SystemCall:
    return SystemCall(number, name, 0, None, Status.LIBC, note)


def _absent(number: int, name: str, note: str) -> SystemCall:
    return SystemCall(number, name, 0, None, Status.ABSENT, note)


SYSTEM_CALLS: Final[tuple[SystemCall, ...]] = (
    _call(17, "getcwd", 2, calls_path.getcwd),
    _call(19, "eventfd2", 2, calls_event.eventfd2),
    _call(20, "epoll_create1", 1, calls_event.epoll_create1),
    _call(21, "epoll_ctl", 4, calls_event.epoll_ctl),
    _call(22, "epoll_pwait", 6, calls_event.epoll_pwait),
    _call(23, "dup", 1, calls_fd.dup),
    _call(24, "dup3", 3, calls_fd.dup3),
    _call(25, "fcntl64", 3, calls_fd.fcntl, "no leases, no owners", restarts=True),
    _absent(26, "inotify_init1", "programs look again and again instead"),
    _call(
        29,
        "ioctl",
        3,
        calls_tty.ioctl,
        "terminals, FIONREAD, FIONBIO, FIOCLEX, SIOCGIF*",
        restarts=True,
    ),
    _call(32, "flock", 2, calls_lock.flock, restarts=True),
    _call(33, "mknodat", 4, calls_path.mknodat),
    _call(34, "mkdirat", 3, calls_path.mkdirat),
    _call(35, "unlinkat", 3, calls_path.unlinkat),
    _call(36, "symlinkat", 3, calls_path.symlinkat),
    _call(37, "linkat", 5, calls_path.linkat),
    _absent(39, "umount2", "mounts are the host's"),
    _absent(40, "mount", "mounts are the host's"),
    _call(43, "statfs64", 3, calls_path.statfs),
    _call(44, "fstatfs64", 3, calls_path.fstatfs),
    _call(45, "truncate64", 3, calls_path.truncate),
    _call(46, "ftruncate64", 3, calls_io.ftruncate),
    _call(47, "fallocate", 6, calls_io.fallocate),
    _call(48, "faccessat", 3, calls_path.faccessat),
    _call(49, "chdir", 1, calls_path.chdir),
    _call(50, "fchdir", 1, calls_path.fchdir),
    _call(51, "chroot", 1, calls_path.chroot, "always EPERM"),
    _call(52, "fchmod", 2, calls_path.fchmod),
    _call(53, "fchmodat", 3, calls_path.fchmodat),
    _call(54, "fchownat", 5, calls_path.fchownat),
    _call(55, "fchown", 3, calls_path.fchown),
    _call(56, "openat", 4, calls_fd.openat, restarts=True),
    _call(57, "close", 1, calls_fd.close),
    _call(59, "pipe2", 2, calls_fd.pipe2),
    _call(61, "getdents64", 3, calls_fd.getdents64),
    _call(62, "_llseek", 5, calls_io.llseek),
    _call(63, "read", 3, calls_io.read, restarts=True),
    _call(64, "write", 3, calls_io.write, restarts=True),
    _call(65, "readv", 3, calls_io.readv, restarts=True),
    _call(66, "writev", 3, calls_io.writev, restarts=True),
    _call(67, "pread64", 5, calls_io.pread),
    _call(68, "pwrite64", 5, calls_io.pwrite),
    _call(69, "preadv", 5, calls_io.preadv),
    _call(70, "pwritev", 5, calls_io.pwritev),
    _call(71, "sendfile64", 4, calls_io.sendfile),
    _call(74, "signalfd4", 4, calls_event.signalfd4, "reads the signals of whoever made it"),
    _call(
        76, "splice", 6, calls_splice.splice, "regular files and simple devices only", restarts=True
    ),
    _call(78, "readlinkat", 4, calls_path.readlinkat),
    _call(81, "sync", 0, calls_io.sync),
    _call(82, "fsync", 1, calls_io.fsync),
    _call(83, "fdatasync", 1, calls_io.fsync),
    _call(85, "timerfd_create", 2, calls_event.timerfd_create),
    _call(93, "exit", 1, calls_thread.exit_thread),
    _call(94, "exit_group", 1, calls_process.exit_group),
    _call(95, "waitid", 5, calls_process.waitid, restarts=True),
    _call(96, "set_tid_address", 1, calls_thread.set_tid_address),
    _call(102, "getitimer", 2, calls_time.getitimer),
    _call(103, "setitimer", 3, calls_time.setitimer),
    _absent(107, "timer_create", "POSIX timers"),
    _call(118, "sched_setparam", 2, calls_scheduling.sched_setparam),
    _call(119, "sched_setscheduler", 3, calls_scheduling.sched_setscheduler, "ordinary policies"),
    _call(120, "sched_getscheduler", 1, calls_scheduling.sched_getscheduler),
    _call(121, "sched_getparam", 2, calls_scheduling.sched_getparam),
    _call(122, "sched_setaffinity", 3, calls_scheduling.sched_setaffinity, "kept, without effect"),
    _call(123, "sched_getaffinity", 3, calls_scheduling.sched_getaffinity),
    _call(124, "sched_yield", 0, calls_scheduling.sched_yield),
    _call(125, "sched_get_priority_max", 1, calls_scheduling.sched_get_priority_max),
    _call(126, "sched_get_priority_min", 1, calls_scheduling.sched_get_priority_min),
    _call(129, "kill", 2, calls_signal.kill),
    _call(130, "tkill", 2, calls_signal.tkill),
    _call(131, "tgkill", 3, calls_signal.tgkill),
    _call(132, "sigaltstack", 2, calls_signal.sigaltstack, "accepted; never used"),
    _call(133, "rt_sigsuspend", 2, calls_signal.rt_sigsuspend),
    _call(134, "rt_sigaction", 4, calls_signal.rt_sigaction),
    _call(135, "rt_sigprocmask", 4, calls_signal.rt_sigprocmask),
    _call(136, "rt_sigpending", 2, calls_signal.rt_sigpending),
    _absent(138, "rt_sigqueueinfo", "signals do not queue"),
    _call(140, "setpriority", 3, calls_scheduling.setpriority, "kept, without effect"),
    _call(141, "getpriority", 2, calls_scheduling.getpriority),
    _call(143, "setregid", 2, calls_identity.setregid),
    _call(144, "setgid", 1, calls_identity.setgid),
    _call(145, "setreuid", 2, calls_identity.setreuid),
    _call(146, "setuid", 1, calls_identity.setuid),
    _call(147, "setresuid", 3, calls_identity.setresuid),
    _call(148, "getresuid", 3, calls_identity.getresuid),
    _call(149, "setresgid", 3, calls_identity.setresgid),
    _call(150, "getresgid", 3, calls_identity.getresgid),
    _call(153, "times", 1, calls_time.times),
    _call(154, "setpgid", 2, calls_process.setpgid),
    _call(155, "getpgid", 1, calls_process.getpgid),
    _call(156, "getsid", 1, calls_process.getsid),
    _call(157, "setsid", 0, calls_process.setsid),
    _call(158, "getgroups", 2, calls_identity.getgroups),
    _call(159, "setgroups", 2, calls_identity.setgroups),
    _call(160, "uname", 1, calls_system.uname),
    _call(161, "sethostname", 2, calls_system.sethostname),
    _call(165, "getrusage", 2, calls_system.getrusage),
    _call(166, "umask", 1, calls_path.umask),
    _call(
        167,
        "prctl",
        2,
        calls_process.prctl,
        "PR_SET_NAME, PR_GET_NAME, PR_SET_DUMPABLE, PR_GET_DUMPABLE",
    ),
    _call(168, "getcpu", 2, calls_system.getcpu),
    _call(172, "getpid", 0, calls_process.getpid),
    _call(173, "getppid", 0, calls_process.getppid),
    _call(174, "getuid", 0, calls_identity.getuid),
    _call(175, "geteuid", 0, calls_identity.geteuid),
    _call(176, "getgid", 0, calls_identity.getgid),
    _call(177, "getegid", 0, calls_identity.getegid),
    _call(178, "gettid", 0, calls_thread.gettid),
    _call(179, "sysinfo", 1, calls_system.sysinfo),
    _call(198, "socket", 3, calls_socket.socket, "Unix, and IPv4 and IPv6 inside the sandbox"),
    _call(199, "socketpair", 4, calls_socket.socketpair, "streams and datagrams"),
    _call(200, "bind", 3, calls_socket.bind),
    _call(201, "listen", 2, calls_socket.listen),
    _call(202, "accept", 3, calls_socket.accept, restarts=True),
    _call(203, "connect", 3, calls_socket.connect, restarts=True),
    _call(204, "getsockname", 3, calls_socket.getsockname),
    _call(205, "getpeername", 3, calls_socket.getpeername),
    _call(206, "sendto", 6, calls_message.sendto, restarts=True),
    _call(207, "recvfrom", 6, calls_message.recvfrom, restarts=True),
    _call(208, "setsockopt", 5, calls_socket.setsockopt, "those without effect here are kept"),
    _call(209, "getsockopt", 5, calls_socket.getsockopt),
    _call(210, "shutdown", 2, calls_socket.shutdown),
    _call(211, "sendmsg", 3, calls_message.sendmsg, "SCM_RIGHTS", restarts=True),
    _call(212, "recvmsg", 3, calls_message.recvmsg, "SCM_RIGHTS", restarts=True),
    _libc(214, "brk", "memory.grow"),
    _libc(215, "munmap", "a free list"),
    _call(
        220,
        "clone",
        5,
        calls_process.clone,
        "vfork and threads; fork is an import of its own",
    ),
    _call(221, "execve", 3, calls_process.execve),
    _libc(222, "mmap", "anonymous and private file mappings"),
    _call(223, "fadvise64_64", 1, calls_io.fadvise, "accepted; nothing to advise"),
    _libc(226, "mprotect", "no protection inside a module"),
    _call(242, "accept4", 4, calls_socket.accept4, restarts=True),
    _call(260, "wait4", 4, calls_process.wait4, restarts=True),
    _call(
        261,
        "prlimit64",
        4,
        calls_system.prlimit64,
        "CPU, FSIZE, NPROC and NOFILE are enforced; AS from the next exec on",
    ),
    _call(267, "syncfs", 1, calls_io.fsync),
    _call(276, "renameat2", 5, calls_path.renameat2),
    _call(278, "getrandom", 3, calls_system.getrandom),
    _call(279, "memfd_create", 2, calls_fd.memfd_create, "no seals"),
    _call(281, "execveat", 5, calls_process.execveat),
    _call(285, "copy_file_range", 6, calls_io.copy_file_range),
    _call(286, "preadv2", 6, calls_io.preadv2, "RWF_NOWAIT waits where read does"),
    _call(287, "pwritev2", 6, calls_io.pwritev2, "no RWF_APPEND, no RWF_NOWAIT"),
    _call(291, "statx", 5, calls_path.statx),
    _call(403, "clock_gettime64", 2, calls_time.clock_gettime),
    _call(404, "clock_settime64", 2, calls_time.clock_settime, "always EPERM"),
    _call(406, "clock_getres_time64", 2, calls_time.clock_getres),
    _call(407, "clock_nanosleep_time64", 4, calls_time.clock_nanosleep),
    _call(410, "timerfd_gettime64", 2, calls_event.timerfd_gettime),
    _call(411, "timerfd_settime64", 4, calls_event.timerfd_settime),
    _call(412, "utimensat_time64", 4, calls_path.utimensat),
    _call(413, "pselect6_time64", 6, calls_time.pselect6),
    _call(414, "ppoll_time64", 5, calls_time.ppoll),
    _call(421, "rt_sigtimedwait_time64", 4, calls_signal.rt_sigtimedwait),
    _call(
        422,
        "futex_time64",
        6,
        calls_thread.futex,
        "no priority inheritance; in one process only",
        restarts=True,
    ),
    _call(423, "sched_rr_get_interval_time64", 2, calls_scheduling.sched_rr_get_interval),
    _call(424, "pidfd_send_signal", 4, calls_event.pidfd_send_signal),
    _call(434, "pidfd_open", 2, calls_event.pidfd_open),
    _call(436, "close_range", 3, calls_fd.close_range),
    _call(439, "faccessat2", 4, calls_path.faccessat2),
    _call(452, "fchmodat2", 4, calls_path.fchmodat2),
    _call(
        1000,
        "startup_size",
        0,
        calls_process.startup_size,
        status=Status.FULL,
        note="our own: arguments and environment",
    ),
    _call(1001, "startup_fill", 2, calls_process.startup_fill, status=Status.FULL, note="our own"),
    _call(
        1002,
        "signal_take",
        1,
        calls_signal.signal_take,
        status=Status.FULL,
        note="our own: enter a handler",
    ),
    _call(
        1003,
        "signal_return",
        1,
        calls_signal.signal_return,
        status=Status.FULL,
        note="our own: leave a handler",
    ),
    _call(
        1004,
        "checkpoint",
        1,
        calls_process.checkpoint,
        status=Status.FULL,
        note="our own: a program that prepared itself is stored, when an image is made",
    ),
)


def _with_its_arguments(call: SystemCall) -> Handler:
    """Fetches as many arguments as the call has."""
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
    call.number: _with_its_arguments(call) for call in SYSTEM_CALLS if call.function is not None
}
RESTARTABLE: Final[frozenset[int]] = frozenset(c.number for c in SYSTEM_CALLS if c.restarts)
