"""epoll, eventfd, timerfd, signalfd, pidfd."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import O_CREAT, O_DIRECTORY, O_RDWR

EPOLLIN, EPOLLOUT = 1, 4
ADD, DELETE, MODIFY = 1, 2, 3
P_PIDFD, WEXITED = 3, 4
SIGTERM = 15


def watch(caller: Caller, epoll: int, fd: int, events: int = EPOLLIN, data: int = 7) -> int:
    return caller.call("epoll_ctl", epoll, ADD, fd, caller.pack("I4xQ", events, data))


def wait(caller: Caller, epoll: int, timeout: int = 0, most: int = 8) -> list[tuple[int, int]]:
    at = caller.room(16 * most)
    count = caller.ok("epoll_pwait", epoll, at, most, timeout, 0, 8)
    return [caller.unpack("I4xQ", at + 16 * i) for i in range(count)]


@pytest.mark.syscalls("epoll_create1", "epoll_ctl", "epoll_pwait")
def test_a_wait_ends_when_a_watched_pipe_has_data(sandbox: Sandbox, caller: Caller) -> None:
    epoll = caller.ok("epoll_create1", 0)
    source, sink = caller.pipe()
    assert watch(caller, epoll, source) == 0
    waiting = caller.begin("epoll_pwait", epoll, caller.room(16), 1, -1, 0, 8)
    assert waiting.is_blocked()
    caller.fork().write(sink, b"x")
    assert waiting.result() == 1
    assert wait(caller, epoll) == [(EPOLLIN, 7)]


@pytest.mark.syscalls("epoll_ctl")
def test_epoll_refuses_regular_files_and_invalid_requests(caller: Caller) -> None:
    epoll = caller.ok("epoll_create1", 0)
    fd = caller.open(b"/tmp/file", O_RDWR | O_CREAT)
    assert -watch(caller, epoll, fd) == Errno.EPERM
    assert -watch(caller, epoll, 99) == Errno.EBADF
    assert -watch(caller, fd, epoll) == Errno.EINVAL
    source, _ = caller.pipe()
    event = caller.pack("I4xQ", EPOLLIN, 0)
    assert caller.errno("epoll_ctl", epoll, MODIFY, source, event) is Errno.ENOENT
    assert caller.errno("epoll_ctl", epoll, 9, source, event) is Errno.EINVAL
    assert caller.errno("epoll_ctl", epoll, ADD, source, 0xFFFF_FFF8) is Errno.EFAULT


@pytest.mark.syscalls("epoll_ctl")
def test_epoll_files_cannot_watch_in_circles_or_too_deep(caller: Caller) -> None:
    one, two = caller.ok("epoll_create1", 0), caller.ok("epoll_create1", 0)
    assert watch(caller, one, two) == 0
    assert -watch(caller, two, one) == Errno.ELOOP
    last = two
    for _ in range(4):
        below = caller.ok("epoll_create1", 0)
        assert watch(caller, below, last) == 0
        last = below
    above = caller.ok("epoll_create1", 0)
    assert -watch(caller, above, last) == Errno.ELOOP


@pytest.mark.syscalls("epoll_ctl")
def test_an_epoll_file_is_ready_when_what_it_watches_is(caller: Caller) -> None:
    inner, outer = caller.ok("epoll_create1", 0), caller.ok("epoll_create1", 0)
    source, sink = caller.pipe()
    assert watch(caller, outer, inner, data=1) == watch(caller, inner, source, data=2) == 0
    assert wait(caller, outer) == []
    caller.write(sink, b"x")
    assert wait(caller, outer) == [(EPOLLIN, 1)]
    caller.read(source)
    assert wait(caller, outer) == []


@pytest.mark.syscalls("epoll_pwait")
def test_a_wait_reports_many_ready_files_in_turn(caller: Caller) -> None:
    epoll = caller.ok("epoll_create1", 0)
    for data in range(3):
        source, sink = caller.pipe()
        caller.write(sink, b"x")
        watch(caller, epoll, source, data=data)
    seen = [wait(caller, epoll, most=1)[0][1] for _ in range(6)]
    assert sorted(seen[:3]) == sorted(seen[3:]) == [0, 1, 2]
    assert caller.errno("epoll_pwait", epoll, caller.room(16), 0, 0, 0, 8) is Errno.EINVAL


@pytest.mark.syscalls("eventfd2")
def test_an_eventfd_counts_and_a_semaphore_gives_one_at_a_time(caller: Caller) -> None:
    fd = caller.ok("eventfd2", 2, 1)
    assert caller.read(fd, 8) == caller.read(fd, 8) == (1).to_bytes(8, "little")
    waiting = caller.begin("read", fd, caller.room(8), 8)
    assert waiting.is_blocked()
    caller.fork().write(fd, (1).to_bytes(8, "little"))
    assert waiting.result() == 8
    assert caller.errno("write", fd, caller.put(b"\xff" * 8), 8) is Errno.EINVAL
    assert caller.errno("write", fd, caller.room(8), 7) is Errno.EINVAL
    assert caller.errno("eventfd2", 0, 0x8000) is Errno.EINVAL


@pytest.mark.syscalls("timerfd_create", "timerfd_settime64", "timerfd_gettime64")
def test_a_timerfd_expires_and_reports_how_often(sandbox: Sandbox, caller: Caller) -> None:
    fd = caller.ok("timerfd_create", 1, 0)
    setting = caller.pack("4q", 0, 1_000_000, 0, 1)
    old = caller.room(32)
    assert caller.ok("timerfd_settime64", fd, 0, setting, old) == 0
    waiting = caller.begin("read", fd, caller.room(8), 8)
    sandbox.fire_timers()
    assert waiting.result() == 8
    caller.ok("timerfd_gettime64", fd, old)
    assert caller.unpack("4q", old)[:2] == (0, 1_000_000)
    caller.ok("timerfd_settime64", fd, 0, caller.pack("4q", 0, 0, 0, 0), 0)
    assert not sandbox.kernel.timer_files
    assert caller.errno("timerfd_create", 9, 0) is Errno.EINVAL
    bad = caller.pack("4q", 0, 0, 0, 1 << 40)
    assert caller.errno("timerfd_settime64", fd, 0, bad, 0xFFFF_FFF8) is not None


@pytest.mark.syscalls("timerfd_settime64")
def test_a_closed_timer_is_forgotten(sandbox: Sandbox, caller: Caller) -> None:
    fd = caller.ok("timerfd_create", 1, 0)
    caller.ok("timerfd_settime64", fd, 0, caller.pack("4q", 0, 0, 1000, 0), 0)
    assert len(sandbox.kernel.timer_files) == 1
    caller.ok("close", fd)
    assert not sandbox.kernel.timer_files


@pytest.mark.syscalls("pidfd_open", "pidfd_send_signal")
def test_a_pidfd_reports_the_end_of_its_process(sandbox: Sandbox, caller: Caller) -> None:
    child = caller.fork()
    fd = caller.ok("pidfd_open", child.process.pid, 0)
    epoll = caller.ok("epoll_create1", 0)
    watch(caller, epoll, fd)
    assert wait(caller, epoll) == []
    caller.ok("pidfd_send_signal", fd, SIGTERM, 0, 0)
    assert wait(caller, epoll) == [(EPOLLIN, 7)]
    info = caller.room(128)
    caller.ok("waitid", P_PIDFD, fd, info, WEXITED, 0)
    assert caller.unpack("iiii", info)[3] == child.process.pid
    assert caller.errno("pidfd_send_signal", fd, SIGTERM, 0, 0) is Errno.ESRCH
    assert caller.errno("pidfd_open", 9999, 0) is Errno.ESRCH
    assert caller.errno("pidfd_open", -1, 0) is Errno.EINVAL


def test_a_signal_can_be_sent_through_the_proc_directory_of_a_process(caller: Caller) -> None:
    child = caller.fork()
    fd = caller.open(b"/proc/%d" % child.process.pid, O_DIRECTORY)
    caller.ok("pidfd_send_signal", fd, SIGTERM, 0, 0)
    assert child.process.dead
    other = caller.open(b"/proc", O_DIRECTORY)
    assert caller.errno("pidfd_send_signal", other, SIGTERM, 0, 0) is Errno.EBADF


SIGINT, SIGUSR1, SIGUSR2, SIG_BLOCK = 2, 10, 12, 0
RECORD = "IiiII20xi84x"


def signals(caller: Caller, *numbers: int) -> int:
    return caller.pack("Q", sum(1 << (number - 1) for number in numbers))


def signal_file(caller: Caller, *numbers: int, flags: int = 0) -> int:
    mask = signals(caller, *numbers)
    caller.ok("rt_sigprocmask", SIG_BLOCK, mask, 0, 8)
    return caller.ok("signalfd4", -1, mask, 8, flags)


@pytest.mark.syscalls("signalfd4")
def test_a_blocked_signal_is_read_from_a_signalfd(caller: Caller) -> None:
    fd = signal_file(caller, SIGUSR1, SIGTERM)
    pid = caller.ok("getpid")
    at = caller.room(512)
    waiting = caller.begin("read", fd, at, 512)
    assert waiting.is_blocked()
    sender = caller.fork()
    sender.ok("kill", pid, SIGTERM)
    assert waiting.result() == 128
    signo, errno, code, source, uid, _ = caller.unpack(RECORD, at)
    assert (signo, errno, code, source, uid) == (SIGTERM, 0, 0, sender.ok("getpid"), 1000)


@pytest.mark.syscalls("signalfd4")
def test_one_signalfd_read_returns_as_many_signals_as_fit(caller: Caller) -> None:
    fd = signal_file(caller, SIGINT, SIGUSR1, SIGUSR2, flags=0o4000)
    pid = caller.ok("getpid")
    at = caller.room(512)
    for number in (SIGUSR2, SIGINT, SIGUSR1, SIGINT):
        caller.ok("kill", pid, number)
    assert caller.errno("read", fd, at, 127) is Errno.EINVAL
    assert caller.ok("read", fd, at, 300) == 256
    assert [caller.unpack("I", at + place)[0] for place in (0, 128)] == [SIGINT, SIGUSR1]
    assert caller.ok("read", fd, at, 512) == 128
    assert caller.unpack("I", at) == (SIGUSR2,)
    assert caller.errno("read", fd, at, 512) is Errno.EAGAIN


@pytest.mark.syscalls("signalfd4")
def test_a_wait_ends_when_a_watched_signal_comes(caller: Caller) -> None:
    fd = signal_file(caller, SIGUSR1)
    epoll = caller.ok("epoll_create1", 0)
    assert watch(caller, epoll, fd) == 0
    assert wait(caller, epoll) == []
    waiting = caller.begin("epoll_pwait", epoll, caller.room(16), 1, -1, 0, 8)
    assert waiting.is_blocked()
    caller.fork().ok("kill", caller.ok("getpid"), SIGUSR1)
    assert waiting.result() == 1


@pytest.mark.syscalls("signalfd4")
def test_the_mask_of_a_signalfd_can_be_changed(caller: Caller) -> None:
    fd = signal_file(caller, SIGUSR1, SIGUSR2, flags=0o4000)
    assert caller.ok("signalfd4", fd, signals(caller, SIGUSR2), 8, 0) == fd
    pid = caller.ok("getpid")
    at = caller.room(128)
    caller.ok("kill", pid, SIGUSR1)
    assert caller.errno("read", fd, at, 128) is Errno.EAGAIN
    caller.ok("kill", pid, SIGUSR2)
    assert caller.ok("read", fd, at, 128) == 128
    mask = signals(caller, SIGUSR1)
    assert caller.errno("signalfd4", caller.pipe()[0], mask, 8, 0) is Errno.EINVAL
    assert caller.errno("signalfd4", 99, mask, 8, 0) is Errno.EBADF
    assert caller.errno("signalfd4", -1, mask, 4, 0) is Errno.EINVAL
    assert caller.errno("signalfd4", -1, mask, 8, 1) is Errno.EINVAL
    assert caller.errno("signalfd4", -1, 0xFFFF_FFF8, 8, 0) is Errno.EFAULT
