"""Threads and futexes as calls see them; programs with threads are in tests/machine."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.abi.context import ProcessEnded
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.process.signals import Signal

WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAIT_BITSET, WAKE_BITSET = 0, 1, 3, 4, 9, 10
PRIVATE, REALTIME = 128, 256
MILLISECONDS_20 = ("qq", 0, 20_000_000)


@pytest.mark.syscalls("gettid", "getpid", "set_tid_address")
def test_a_single_thread_has_the_pid_as_its_tid(caller: Caller) -> None:
    pid = caller.ok("getpid")
    assert caller.ok("gettid") == pid
    assert caller.ok("set_tid_address", caller.room(4)) == pid


@pytest.mark.syscalls("futex_time64")
def test_a_futex_wait_for_another_value_fails_at_once(caller: Caller) -> None:
    word = caller.pack("I", 5)
    assert caller.errno("futex_time64", word, WAIT, 4) is Errno.EAGAIN
    assert caller.errno("futex_time64", word, WAIT_BITSET | PRIVATE, 4, 0, 0, 1) is Errno.EAGAIN


@pytest.mark.parametrize("operation", [WAIT, WAIT | PRIVATE])
def test_a_futex_wait_ends_at_its_timeout(caller: Caller, operation: int) -> None:
    word = caller.pack("I", 5)
    limit = caller.pack(*MILLISECONDS_20)
    assert caller.errno("futex_time64", word, operation, 5, limit) is Errno.ETIMEDOUT
    assert not caller.process.futexes


@pytest.mark.parametrize("clock", [0, REALTIME])
def test_a_futex_bitset_wait_has_an_absolute_deadline(caller: Caller, clock: int) -> None:
    word = caller.pack("I", 5)
    past = caller.pack("qq", 1, 0)
    operation = WAIT_BITSET | PRIVATE | clock
    assert caller.errno("futex_time64", word, operation, 5, past, 0, 1) is Errno.ETIMEDOUT


def test_a_handled_signal_ends_a_futex_wait(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1, 77)
    waiting = caller.begin("futex_time64", caller.pack("I", 5), WAIT, 5)
    assert waiting.is_blocked()
    caller.fork().ok("kill", caller.process.pid, Signal.SIGUSR1)
    assert waiting.result() == -Errno.EINTR
    assert not caller.process.futexes


def test_waking_a_futex_without_waiters_wakes_nobody(caller: Caller) -> None:
    word, other = caller.pack("I", 5), caller.pack("I", 6)
    assert caller.ok("futex_time64", word, WAKE, 100) == 0
    assert caller.ok("futex_time64", word, WAKE_BITSET, 100, 0, 0, 1) == 0
    assert caller.ok("futex_time64", word, REQUEUE, 1, 1, other) == 0
    assert caller.ok("futex_time64", word, CMP_REQUEUE, 1, 1, other, 5) == 0
    assert caller.errno("futex_time64", word, CMP_REQUEUE, 1, 1, other, 6) is Errno.EAGAIN


def test_bad_futexes_are_refused(caller: Caller) -> None:
    word = caller.pack("I", 5)
    assert caller.errno("futex_time64", word + 1, WAKE, 1) is Errno.EINVAL
    assert caller.errno("futex_time64", 0x7FFF_FFF0, WAKE, 1) is Errno.EFAULT
    assert caller.errno("futex_time64", word, WAIT_BITSET, 5, 0, 0, 0) is Errno.EINVAL
    assert caller.errno("futex_time64", word, WAKE_BITSET, 5, 0, 0, 0) is Errno.EINVAL
    assert caller.errno("futex_time64", word, 77, 5) is Errno.ENOSYS
    assert caller.errno("futex_time64", word, WAIT, 5, 0x7FFF_FFF0) is Errno.EFAULT
    bad_time = caller.pack("qq", 0, 2_000_000_000)
    assert caller.errno("futex_time64", word, WAIT, 5, bad_time) is Errno.EINVAL


THREAD = 0x10000 | 0x800 | 0x400 | 0x200 | 0x100


@pytest.mark.syscalls("clone")
def test_a_thread_must_share_everything(caller: Caller) -> None:
    stack = caller.room(64) & ~15
    for missing in (0x800, 0x400, 0x200, 0x100):
        assert caller.errno("clone", THREAD & ~missing, stack) is Errno.EINVAL
    assert caller.errno("clone", THREAD, 0) is Errno.EINVAL
    assert caller.errno("clone", THREAD, stack + 4) is Errno.EINVAL
    assert caller.errno("clone", THREAD, 0x7FFF_FFF0) is Errno.EFAULT
    assert caller.errno("clone", THREAD | 0x100000, stack, 0x7FFF_FFF0) is Errno.EFAULT
    assert len(caller.process.threads) == 1


def test_a_vfork_child_starts_no_thread(caller: Caller) -> None:
    assert caller.ok("clone", 0x4111) == 0
    assert caller.errno("clone", THREAD, caller.room(64) & ~15) is Errno.EAGAIN
    assert caller.ok("exit", 3) > 0


@pytest.mark.syscalls("exit")
def test_the_exit_of_the_last_thread_ends_the_process(caller: Caller) -> None:
    with pytest.raises(ProcessEnded):
        caller.call("exit", 3)
    assert caller.process.dead
    assert caller.process.exit_status == 3 << 8


@pytest.mark.syscalls("tkill", "tgkill")
def test_signals_to_missing_threads_are_refused(caller: Caller, sandbox: Sandbox) -> None:
    pid, other = caller.ok("getpid"), sandbox.process().process.pid
    assert caller.errno("tkill", 0, 0) is Errno.EINVAL
    assert caller.errno("tgkill", 0, pid, 0) is Errno.EINVAL
    assert caller.errno("tkill", 9999, 0) is Errno.ESRCH
    assert caller.errno("tgkill", pid, other, 0) is Errno.ESRCH
    assert caller.errno("tkill", pid, 65) is Errno.EINVAL
    assert caller.ok("tgkill", pid, pid, 0) == 0
