"""Signals: actions, masks, sending, waiting for and taking them."""

from __future__ import annotations

import time

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.abi.context import ProcessEnded
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.process.signals import Signal, mask_of

BLOCK, UNBLOCK, SETMASK = range(3)
SA_RESTART = 0x10000000
USR1, USR2 = mask_of(Signal.SIGUSR1), mask_of(Signal.SIGUSR2)


def set_mask(caller: Caller, mask: int, how: int = SETMASK) -> None:
    caller.ok("rt_sigprocmask", how, caller.pack("Q", mask), 0, 8)


def get_mask(caller: Caller) -> int:
    address = caller.room(8)
    caller.ok("rt_sigprocmask", 0, 0, address, 8)
    mask: int = caller.unpack("Q", address)[0]
    return mask


def send(caller: Caller, signo: int) -> None:
    """A signal from outside."""
    caller.fork().ok("kill", caller.process.pid, signo)


@pytest.mark.syscalls("rt_sigaction")
def test_signal_actions_are_set_and_read_back(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1, 77, SA_RESTART, USR2)
    old = caller.room(20)
    caller.ok("rt_sigaction", Signal.SIGUSR1, 0, old, 8)
    assert caller.unpack("IIIQ", old) == (77, SA_RESTART, 0, USR2)
    new = caller.pack("IIIQ", 1, 0, 0, 0)
    caller.ok("rt_sigaction", Signal.SIGUSR1, new, old, 8)
    assert caller.unpack("IIIQ", old)[0] == 77
    for signo, size in ((0, 8), (65, 8), (Signal.SIGUSR1, 16), (Signal.SIGKILL, 8)):
        assert caller.errno("rt_sigaction", signo, new, 0, size) is Errno.EINVAL
    caller.ok("rt_sigaction", Signal.SIGKILL, 0, old, 8)
    assert caller.errno("rt_sigaction", 10, len(caller.space) - 19, 0, 8) is Errno.EFAULT
    assert caller.errno("rt_sigaction", 10, new, len(caller.space) - 19, 8) is Errno.EFAULT


@pytest.mark.syscalls("rt_sigprocmask", "rt_sigpending")
def test_masks_and_pending_signals(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1)
    set_mask(caller, (1 << 64) - 1)
    assert get_mask(caller) == (1 << 64) - 1 - mask_of(Signal.SIGKILL, Signal.SIGSTOP)
    set_mask(caller, USR1)
    set_mask(caller, USR2, BLOCK)
    assert get_mask(caller) == USR1 | USR2
    set_mask(caller, USR2, UNBLOCK)
    send(caller, Signal.SIGUSR1)
    assert caller.signal_flag == 0
    pending = caller.room(8)
    caller.ok("rt_sigpending", pending, 8)
    assert caller.unpack("Q", pending)[0] & USR1
    set_mask(caller, 0)
    assert caller.signal_flag == 1, "the signal can be delivered before the call returns"
    mask = caller.pack("Q", 0)
    assert caller.errno("rt_sigprocmask", 9, mask, 0, 8) is Errno.EINVAL
    caller.ok("rt_sigprocmask", 9, 0, 0, 8)
    assert caller.errno("rt_sigprocmask", 0, mask, 0, 4) is Errno.EINVAL
    assert caller.errno("rt_sigpending", pending, 4) is Errno.EINVAL


@pytest.mark.syscalls("signal_take", "signal_return")
def test_a_handler_is_entered_and_left(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1, 99, 4, USR2)
    set_mask(caller, mask_of(Signal.SIGHUP))
    send(caller, Signal.SIGUSR1)
    caller.ok("getpid")
    assert caller.signal_flag == 1
    address = caller.room(152, 0xAA)
    assert caller.ok("signal_take", address) == Signal.SIGUSR1
    head = caller.unpack("IIIIQ", address)
    assert head == (Signal.SIGUSR1, 99, 4, 0, mask_of(Signal.SIGHUP))
    signo, _, code, pid, uid = caller.unpack("5i", address + 24)
    assert (signo, code, uid) == (Signal.SIGUSR1, 0, 1000)
    assert pid != caller.process.pid
    assert get_mask(caller) == mask_of(Signal.SIGHUP) | USR1 | USR2
    assert caller.ok("signal_take", address) == 0
    assert caller.signal_flag == 0
    caller.ok("signal_return", address + 16)
    assert get_mask(caller) == mask_of(Signal.SIGHUP)
    assert caller.errno("signal_take", len(caller.space) - 151) is Errno.EFAULT
    assert caller.errno("signal_return", len(caller.space) - 7) is Errno.EFAULT


def test_the_mask_of_a_returning_handler_cannot_block_sigkill(caller: Caller) -> None:
    caller.ok("signal_return", caller.pack("Q", (1 << 64) - 1))
    assert not get_mask(caller) & mask_of(Signal.SIGKILL, Signal.SIGSTOP)


def test_returning_from_a_handler_lets_the_next_signal_through(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1)
    send(caller, Signal.SIGUSR1)
    _, mask = caller.take_signal()
    send(caller, Signal.SIGUSR1)
    assert caller.take_signal()[0] == 0
    caller.ok("signal_return", caller.pack("Q", mask))
    assert caller.signal_flag == 1
    assert caller.take_signal()[0] == Signal.SIGUSR1


@pytest.mark.syscalls("kill", "tkill", "tgkill")
def test_sending(caller: Caller) -> None:
    pid = caller.process.pid
    caller.handle(Signal.SIGUSR1)
    for name, *arguments in (("kill", pid), ("tkill", pid), ("tgkill", pid, pid)):
        caller.ok(name, *arguments, Signal.SIGUSR1)
        signo, mask = caller.take_signal()
        assert signo == Signal.SIGUSR1
        caller.ok("signal_return", caller.pack("Q", mask))
        caller.ok(name, *arguments, 0)
        assert caller.errno(name, *arguments, 65) is Errno.EINVAL
    assert caller.errno("kill", 9999, 0) is Errno.ESRCH
    assert caller.errno("kill", 0x8000_0000, 0) is Errno.ESRCH
    assert caller.errno("tkill", 9999, 0) is Errno.ESRCH
    assert caller.errno("tkill", 0, 0) is Errno.EINVAL
    assert caller.errno("tgkill", 1, -1, 0) is Errno.EINVAL
    assert caller.errno("kill", 1, Signal.SIGTERM) is Errno.EPERM


@pytest.mark.syscalls("rt_sigsuspend")
def test_sigsuspend_waits_with_another_mask_and_puts_the_old_one_back(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1)
    caller.handle(Signal.SIGUSR2)
    set_mask(caller, USR1 | USR2)
    send(caller, Signal.SIGUSR2)
    waiting = caller.begin("rt_sigsuspend", caller.pack("Q", USR2), 8)
    assert waiting.is_blocked()
    send(caller, Signal.SIGUSR1)
    assert waiting.result() == -Errno.EINTR
    signo, mask = caller.take_signal()
    assert (signo, mask) == (Signal.SIGUSR1, USR1 | USR2)
    caller.ok("signal_return", caller.pack("Q", mask))
    assert get_mask(caller) == USR1 | USR2
    assert caller.errno("rt_sigsuspend", 0, 4) is Errno.EINVAL
    assert caller.errno("rt_sigsuspend", len(caller.space) - 7, 8) is Errno.EFAULT
    assert get_mask(caller) == USR1 | USR2


def test_sigsuspend_ends_at_once_for_a_signal_that_is_pending(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1)
    set_mask(caller, USR1)
    send(caller, Signal.SIGUSR1)
    assert caller.call("rt_sigsuspend", caller.pack("Q", 0), 8) == -Errno.EINTR
    assert caller.take_signal() == (Signal.SIGUSR1, USR1)


def test_a_stop_does_not_end_sigsuspend(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR1)
    set_mask(caller, USR1)
    child = caller.fork()
    waiting = child.begin("rt_sigsuspend", child.pack("Q", 0), 8)
    assert waiting.is_blocked()
    caller.ok("kill", child.process.pid, Signal.SIGSTOP)
    caller.ok("kill", child.process.pid, Signal.SIGCONT)
    assert not waiting.ended(0.05)
    caller.ok("kill", child.process.pid, Signal.SIGUSR1)
    assert waiting.result() == -Errno.EINTR


@pytest.mark.syscalls("rt_sigtimedwait_time64")
def test_sigtimedwait_takes_a_blocked_signal(caller: Caller) -> None:
    set_mask(caller, USR1 | USR2)
    wanted, info = caller.pack("Q", USR1), caller.room(128, 0xAA)
    waiting = caller.begin("rt_sigtimedwait_time64", wanted, info, 0, 8)
    assert waiting.is_blocked()
    send(caller, Signal.SIGUSR2)
    assert not waiting.ended(0.02)
    send(caller, Signal.SIGUSR1)
    assert waiting.result() == Signal.SIGUSR1
    assert caller.unpack("i", info) == (Signal.SIGUSR1,)
    assert caller.process.signals.pending & (USR1 | USR2) == USR2


@pytest.mark.syscalls("rt_sigtimedwait_time64")
def test_sigtimedwait_gives_up_in_time_and_forgets_the_deadline(caller: Caller) -> None:
    wanted = caller.pack("Q", USR1)
    now = caller.pack("qq", 0, 0)
    assert caller.errno("rt_sigtimedwait_time64", wanted, 0, now, 8) is Errno.EAGAIN
    began = time.monotonic()
    soon = caller.pack("qq", 0, 50_000_000)
    assert caller.errno("rt_sigtimedwait_time64", wanted, 0, soon, 8) is Errno.EAGAIN
    assert time.monotonic() - began > 0.04
    caller.ok("clock_nanosleep_time64", 1, 0, soon, 0)
    assert time.monotonic() - began > 0.09
    bad = caller.pack("qq", 0, 1_000_000_000)
    assert caller.errno("rt_sigtimedwait_time64", wanted, 0, bad, 8) is Errno.EINVAL
    assert caller.errno("rt_sigtimedwait_time64", wanted, 0, 0, 4) is Errno.EINVAL


def test_sigtimedwait_is_interrupted_by_other_handlers(caller: Caller) -> None:
    caller.handle(Signal.SIGUSR2, flags=SA_RESTART)
    waiting = caller.begin("rt_sigtimedwait_time64", caller.pack("Q", USR1), 0, 0, 8)
    assert waiting.is_blocked()
    send(caller, Signal.SIGUSR2)
    assert waiting.result() == -Errno.EINTR


@pytest.mark.syscalls("sigaltstack")
def test_an_alternate_stack_is_accepted_and_never_used(caller: Caller) -> None:
    old = caller.room(12, 0xAA)
    caller.ok("sigaltstack", caller.pack("IiI", 4096, 0, 8192), old)
    assert caller.unpack("IiI", old) == (0, 2, 0)


def test_a_killed_process_leaves_its_call(caller: Caller) -> None:
    child = caller.fork()
    read_fd, _ = child.pipe()
    reading = child.begin("read", read_fd, child.room(1), 1)
    assert reading.is_blocked()
    caller.ok("kill", child.process.pid, Signal.SIGKILL)
    with pytest.raises(ProcessEnded):
        reading.result()
    assert child.process.exit_status == Signal.SIGKILL


def test_a_process_that_kills_itself_does_not_return_from_the_call(sandbox: Sandbox) -> None:
    caller = sandbox.process()
    with pytest.raises(ProcessEnded):
        caller.call("kill", caller.process.pid, Signal.SIGTERM)
    assert caller.process.exit_status == Signal.SIGTERM


def test_a_process_that_stops_itself_returns_when_continued(caller: Caller) -> None:
    child = caller.fork()
    stopping = child.begin("kill", child.process.pid, Signal.SIGSTOP)
    assert stopping.is_stopped()
    caller.ok("kill", child.process.pid, Signal.SIGCONT)
    assert stopping.result() == 0


def test_a_sleeper_whose_time_passes_while_it_is_stopped_does_not_spin(caller: Caller) -> None:
    child = caller.fork()
    sleeping = child.begin("clock_nanosleep_time64", 1, 0, child.pack("qq", 0, 50_000_000), 0)
    assert sleeping.is_blocked()
    caller.ok("kill", child.process.pid, Signal.SIGSTOP)
    time.sleep(0.06)
    before = time.process_time()
    time.sleep(0.1)
    assert time.process_time() - before < 0.05
    caller.ok("kill", child.process.pid, Signal.SIGCONT)
    assert sleeping.result() == 0
