"""Clocks, sleeps, timers, poll and select."""

from __future__ import annotations

import time

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT
from wasmsand.kernel.process.signals import Signal, mask_of

REALTIME, MONOTONIC, PROCESS_CPU, THREAD_CPU = range(4)
MILLISECOND = 1_000_000
USR1 = mask_of(Signal.SIGUSR1)


def span(caller: Caller, seconds: int = 0, nanoseconds: int = 0) -> int:
    return caller.pack("qq", seconds, nanoseconds)


def now(caller: Caller, clock: int) -> float:
    address = caller.room(16)
    caller.ok("clock_gettime64", clock, address)
    seconds, rest = caller.unpack("qq", address)
    return float(seconds + rest / 1e9)


@pytest.mark.syscalls("clock_gettime64", "clock_getres_time64", "clock_settime64")
def test_clocks(caller: Caller, root: Caller) -> None:
    assert abs(now(caller, REALTIME) - time.time()) < 1
    before = now(caller, MONOTONIC)
    assert now(caller, MONOTONIC) >= before
    assert now(caller, PROCESS_CPU) >= 0
    address = caller.room(16)
    for clock in (*range(8),):
        caller.ok("clock_gettime64", clock, address)
        caller.ok("clock_getres_time64", clock, address)
        assert caller.unpack("qq", address) == (0, 1)
        caller.ok("clock_getres_time64", clock, 0)
    for clock in (8, 99, -1):
        assert caller.errno("clock_gettime64", clock, address) is Errno.EINVAL
        assert caller.errno("clock_getres_time64", clock, address) is Errno.EINVAL
    assert root.errno("clock_settime64", REALTIME, span(root, 1)) is Errno.EPERM
    assert root.errno("clock_settime64", 99, span(root, 1)) is Errno.EINVAL
    assert caller.errno("clock_gettime64", REALTIME, len(caller.space) - 15) is Errno.EFAULT


@pytest.mark.syscalls("clock_nanosleep_time64")
def test_a_sleep_lasts_as_long_as_asked(caller: Caller) -> None:
    began = time.monotonic()
    caller.ok("clock_nanosleep_time64", MONOTONIC, 0, span(caller, 0, 30 * MILLISECOND), 0)
    assert 0.03 <= time.monotonic() - began < 5
    end = now(caller, REALTIME) + 0.03
    absolute = span(caller, int(end), int(end % 1 * 1e9))
    caller.ok("clock_nanosleep_time64", REALTIME, 1, absolute, 0)
    assert now(caller, REALTIME) >= end - 0.001
    caller.ok("clock_nanosleep_time64", REALTIME, 1, span(caller, 1), 0)


@pytest.mark.syscalls("clock_nanosleep_time64")
def test_an_interrupted_sleep_reports_the_remaining_time(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1, flags=0x10000000)
    remaining = caller.room(16)
    sleeping = caller.begin("clock_nanosleep_time64", MONOTONIC, 0, span(caller, 100), remaining)
    assert sleeping.is_blocked()
    caller.fork().ok("kill", caller.process.pid, Signal.SIGUSR1)
    assert sleeping.result() == -Errno.EINTR
    assert 90 <= caller.unpack("qq", remaining)[0] < 100


@pytest.mark.parametrize(
    ("clock", "seconds", "nanoseconds", "errno"),
    [
        (MONOTONIC, -1, 0, Errno.EINVAL),
        (MONOTONIC, 0, 1_000_000_000, Errno.EINVAL),
        (MONOTONIC, 0, -1, Errno.EINVAL),
        (99, 0, 0, Errno.EINVAL),
        (THREAD_CPU, 0, 0, Errno.EOPNOTSUPP),
    ],
)
def test_invalid_sleeps_are_refused(
    caller: Caller, clock: int, seconds: int, nanoseconds: int, errno: Errno
) -> None:
    request = span(caller, seconds, nanoseconds)
    assert caller.errno("clock_nanosleep_time64", clock, 0, request, 0) is errno


def test_the_upper_half_of_nanoseconds_is_padding(caller: Caller) -> None:
    caller.ok("clock_nanosleep_time64", MONOTONIC, 0, span(caller, 0, 0x7FFF_FFFF << 32), 0)


@pytest.mark.syscalls("setitimer", "getitimer")
def test_interval_timers(caller: Caller, sandbox: Sandbox) -> None:
    caller.handle(Signal.SIGALRM)
    old = caller.room(16)
    caller.ok("setitimer", 0, caller.pack("4i", 0, 0, 100, 0), 0)
    caller.ok("getitimer", 0, old)
    assert caller.unpack("4i", old)[:2] == (0, 0)
    assert 99 <= caller.unpack("4i", old)[2] <= 100
    caller.ok("setitimer", 0, caller.pack("4i", 0, 0, 0, 1000), old)
    assert caller.unpack("4i", old)[2] >= 99
    time.sleep(0.005)
    sandbox.fire_timers()
    assert caller.take_signal()[0] == Signal.SIGALRM
    for which, words in ((3, (0, 0, 1, 0)), (0, (0, -1, 0, 0)), (0, (0, 0, 0, 1_000_000))):
        assert caller.errno("setitimer", which, caller.pack("4i", *words), 0) is Errno.EINVAL
    assert caller.errno("getitimer", 3, old) is Errno.EINVAL
    caller.ok("setitimer", 1, caller.pack("4i", 0, 0, 50, 0), 0)  # of CPU time
    caller.ok("getitimer", 1, old)
    assert caller.unpack("4i", old)[2] in (49, 50)
    good = caller.pack("4i", 0, 0, 0, 0)
    assert caller.errno("setitimer", 0, good, len(caller.space) - 15) is Errno.EFAULT


@pytest.mark.syscalls("times")
def test_times(caller: Caller) -> None:
    address = caller.room(16, 0xAA)
    assert 0 <= caller.ok("times", address) < 100_000
    assert all(value >= 0 for value in caller.unpack("4i", address))
    caller.ok("times", 0)


# poll.


def poll(
    caller: Caller, *wanted: tuple[int, int], timeout: int | None = 0, mask: int = 0
) -> tuple[int, list[int]]:
    """(result, revents) of ppoll."""
    address = caller.put(b"")
    address = caller.room(8 * len(wanted))
    for i, (fd, events) in enumerate(wanted):
        caller.space[address + 8 * i : address + 8 * i + 8] = (
            fd.to_bytes(4, "little", signed=True) + events.to_bytes(2, "little") + b"\xff\xff"
        )
    limit = 0 if timeout is None else span(caller, 0, timeout)
    result = caller.call("ppoll_time64", address, len(wanted), limit, mask, 8)
    return result, [caller.unpack("ihH", address + 8 * i)[2] for i in range(len(wanted))]


@pytest.mark.syscalls("ppoll_time64")
def test_poll_reports_what_is_ready(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    assert poll(caller, (read_fd, POLLIN), (write_fd, POLLOUT)) == (1, [0, POLLOUT])
    caller.write(write_fd, b"x")
    assert poll(caller, (read_fd, POLLIN), (99, POLLIN), (-1, POLLIN)) == (2, [POLLIN, POLLNVAL, 0])
    caller.ok("close", write_fd)
    assert poll(caller, (read_fd, POLLIN)) == (1, [POLLIN | POLLHUP])
    other_read, other_write = caller.pipe()
    caller.ok("close", other_read)
    assert poll(caller, (other_write, 0)) == (1, [POLLERR])


@pytest.mark.syscalls("ppoll_time64")
def test_poll_waits_for_a_file_or_for_its_time(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    began = time.monotonic()
    assert poll(caller, (read_fd, POLLIN), timeout=30 * MILLISECOND) == (0, [0])
    assert time.monotonic() - began >= 0.03
    fds = caller.pack("ihh", read_fd, POLLIN, 0)
    polling = caller.begin("ppoll_time64", fds, 1, 0, 0, 8)
    assert polling.is_blocked()
    caller.fork().write(write_fd, b"x")
    assert polling.result() == 1
    assert caller.unpack("ihh", fds) == (read_fd, POLLIN, POLLIN)


@pytest.mark.syscalls("ppoll_time64")
def test_poll_with_a_mask_lets_a_signal_in_and_puts_the_mask_back(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1)
    caller.ok("rt_sigprocmask", 2, caller.pack("Q", USR1), 0, 8)
    assert poll(caller, timeout=0, mask=caller.pack("Q", 0)) == (0, [])
    assert caller.process.signals.mask == USR1
    caller.fork().ok("kill", caller.process.pid, Signal.SIGUSR1)
    assert poll(caller, timeout=None, mask=caller.pack("Q", 0))[0] == -Errno.EINTR
    assert caller.take_signal() == (Signal.SIGUSR1, USR1)


def test_a_failed_poll_puts_the_mask_back_and_forgets_its_deadline(caller: Caller) -> None:
    mask, soon = caller.pack("Q", USR1), span(caller, 0, MILLISECOND)
    bad = len(caller.space) - 7
    assert caller.errno("ppoll_time64", bad, 1, soon, mask, 8) is Errno.EFAULT
    assert caller.errno("ppoll_time64", bad, 1 << 20, soon, mask, 8) is Errno.EINVAL
    assert caller.errno("ppoll_time64", 0, 0, soon, mask, 4) is Errno.EINVAL
    assert caller.errno("ppoll_time64", 0, 0, span(caller, -1), mask, 8) is Errno.EINVAL
    assert caller.process.signals.mask == 0
    assert caller.guest.thread.call.deadline is None


# select.


def select(
    caller: Caller, count: int, sets: tuple[int, int, int], timeout: int | None = 0, mask: int = 0
) -> tuple[int, tuple[int, ...]]:
    """(result, the three sets) of pselect6."""
    addresses = [caller.pack("QQ", bits & (1 << 64) - 1, bits >> 64) for bits in sets]
    limit = 0 if timeout is None else span(caller, 0, timeout)
    result = caller.call("pselect6_time64", count, *addresses, limit, mask)
    found = [caller.unpack("QQ", address) for address in addresses]
    return result, tuple(low | high << 64 for low, high in found)


@pytest.mark.syscalls("pselect6_time64")
def test_select_reports_what_is_ready(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    assert (read_fd, write_fd) == (0, 1)
    assert select(caller, 2, (0b11, 0b11, 0b11)) == (1, (0, 0b10, 0))
    caller.write(write_fd, b"x")
    assert select(caller, 2, (0b01, 0b10, 0)) == (2, (0b01, 0b10, 0))
    caller.ok("dup3", write_fd, 70, 0)
    assert select(caller, 71, (0, 1 << 70, 0)) == (1, (0, 1 << 70, 0))
    caller.ok("close", write_fd)
    caller.ok("close", 70)
    assert select(caller, 1, (1, 0, 0)) == (1, (1, 0, 0))
    assert caller.ok("pselect6_time64", 0, 0, 0, 0, span(caller), 0) == 0


@pytest.mark.syscalls("pselect6_time64")
def test_select_waits_for_its_time_or_a_signal(caller: Caller) -> None:
    caller.pipe()
    began = time.monotonic()
    assert select(caller, 1, (1, 0, 0), timeout=30 * MILLISECOND) == (0, (0, 0, 0))
    assert time.monotonic() - began >= 0.03
    caller.handle(Signal.SIGUSR1)
    caller.ok("rt_sigprocmask", 2, caller.pack("Q", USR1), 0, 8)
    caller.fork().ok("kill", caller.process.pid, Signal.SIGUSR1)
    mask = caller.pack("II", caller.pack("Q", 0), 8)
    assert select(caller, 1, (1, 0, 0), timeout=None, mask=mask)[0] == -Errno.EINTR
    assert caller.take_signal() == (Signal.SIGUSR1, USR1)


@pytest.mark.syscalls("pselect6_time64")
def test_a_failed_select_puts_the_mask_back(caller: Caller) -> None:
    mask = caller.pack("II", caller.pack("Q", USR1), 8)
    assert select(caller, 8, (0x80, 0, 0), mask=mask)[0] == -Errno.EBADF
    assert select(caller, 1 << 20, (0, 0, 0), mask=mask)[0] == -Errno.EINVAL
    assert select(caller, -1, (0, 0, 0))[0] == -Errno.EINVAL
    wrong_size = caller.pack("II", caller.pack("Q", USR1), 4)
    assert select(caller, 0, (0, 0, 0), mask=wrong_size)[0] == -Errno.EINVAL
    assert caller.errno("pselect6_time64", 64, len(caller.space) - 7, 0, 0, 0, 0) in (
        Errno.EFAULT, Errno.EBADF,
    )  # fmt: skip
    assert caller.process.signals.mask == 0
