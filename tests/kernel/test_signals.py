"""Signals: default actions, masks, handlers, permissions, stop and continue."""

from __future__ import annotations

import pytest

from tests.kernel.system import HANDLER, System, Woken, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.process.delivery import (
    act_on_pending,
    deliverable_handler,
    interrupts,
    kill,
    restarts,
    take_for_handler,
)
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import (
    SA_NODEFER,
    SA_RESETHAND,
    SA_RESTART,
    SIG_DFL,
    SIG_IGN,
    Signal,
    SignalAction,
    mask_of,
)
from wasmsand.kernel.wait import WouldBlock

FATAL = sorted(
    {*range(1, 65)}
    - {Signal.SIGCHLD, Signal.SIGURG, Signal.SIGWINCH, Signal.SIGCONT}
    - {Signal.SIGSTOP, Signal.SIGTSTP, Signal.SIGTTIN, Signal.SIGTTOU}
)


def ignore(process: Process, signo: int) -> None:
    process.signals.set_action(signo, SignalAction(SIG_IGN))


@pytest.mark.parametrize("signo", FATAL)
def test_most_signals_end_a_process(system: System, process: Process, signo: int) -> None:
    child = system.fork(process)
    system.send(child, signo)
    assert (child.dead, child.exit_status) == (True, signo)


@pytest.mark.parametrize("signo", [Signal.SIGCHLD, Signal.SIGURG, Signal.SIGWINCH, Signal.SIGCONT])
def test_some_signals_do_nothing_by_default(system: System, process: Process, signo: int) -> None:
    system.send(process, signo)
    assert not process.dead
    assert not process.signals.pending


@pytest.mark.parametrize("signo", [Signal.SIGTERM, Signal.SIGTSTP, Signal.SIGCHLD])
def test_an_ignored_signal_leaves_no_trace(system: System, process: Process, signo: int) -> None:
    ignore(process, signo)
    system.send(process, signo)
    assert not process.dead
    assert not process.stopped
    assert not process.signals.pending


@pytest.mark.parametrize("signo", [Signal.SIGKILL, Signal.SIGSTOP])
def test_kill_and_stop_cannot_be_caught_ignored_or_blocked(
    system: System, process: Process, signo: int
) -> None:
    for action in (SIG_IGN, SIG_DFL, HANDLER):
        assert errno_of(process.signals.set_action, signo, SignalAction(action)) is Errno.EINVAL
    process.signals.set_mask((1 << 64) - 1)
    system.send(process, signo)
    assert process.dead or process.stopped


def test_a_blocked_signal_waits_until_it_is_unblocked(system: System, process: Process) -> None:
    process.signals.set_mask(mask_of(Signal.SIGTERM))
    system.send(process, Signal.SIGTERM)
    assert not process.dead
    process.signals.set_mask(0)
    act_on_pending(system.kernel, process.first_thread)
    assert process.exit_status == Signal.SIGTERM


def test_a_blocked_signal_is_pending_even_when_ignored_but_then_does_nothing(
    system: System, process: Process
) -> None:
    ignore(process, Signal.SIGUSR1)
    process.signals.set_mask(mask_of(Signal.SIGUSR1))
    system.send(process, Signal.SIGUSR1)
    assert process.signals.pending == mask_of(Signal.SIGUSR1)
    process.signals.set_mask(0)
    act_on_pending(system.kernel, process.first_thread)
    assert not process.signals.pending
    assert not process.dead


def test_ignoring_a_pending_signal_discards_it(system: System, process: Process) -> None:
    process.signals.set_mask(mask_of(Signal.SIGUSR1))
    system.send(process, Signal.SIGUSR1)
    ignore(process, Signal.SIGUSR1)
    assert not process.signals.pending


def test_a_blocked_signal_wakes_those_who_wait_for_it(system: System, process: Process) -> None:
    process.signals.set_mask(mask_of(Signal.SIGUSR1))
    woken = Woken(WouldBlock((process.signal_queue,)))
    system.send(process, Signal.SIGUSR1)
    assert woken
    assert process.signals.next_deliverable(mask_of(Signal.SIGUSR1)) == Signal.SIGUSR1


def test_a_signal_with_a_handler_stays_for_the_guest_to_take(
    system: System, process: Process
) -> None:
    system.handle(process, Signal.SIGUSR1, mask=mask_of(Signal.SIGUSR2))
    system.send(process, Signal.SIGUSR1)
    assert interrupts(process.first_thread)
    taken = take_for_handler(process.first_thread)
    assert taken is not None
    assert (taken.info.signo, taken.action.handler, taken.old_mask) == (Signal.SIGUSR1, HANDLER, 0)
    assert process.signals.mask == mask_of(Signal.SIGUSR1, Signal.SIGUSR2)
    assert take_for_handler(process.first_thread) is None


def test_standard_signals_do_not_queue(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGUSR1)
    system.send(process, Signal.SIGUSR1, Signal.SIGUSR1, Signal.SIGUSR1)
    assert take_for_handler(process.first_thread) is not None
    process.signals.set_mask(0)
    assert take_for_handler(process.first_thread) is None


def test_handlers_run_lowest_number_first(system: System, process: Process) -> None:
    for signo in (Signal.SIGTERM, Signal.SIGHUP, Signal.SIGUSR1):
        system.handle(process, signo, SA_NODEFER)
        system.send(process, signo)
    order = []
    while (taken := take_for_handler(process.first_thread)) is not None:
        order.append(taken.info.signo)
    assert order == [Signal.SIGHUP, Signal.SIGUSR1, Signal.SIGTERM]


def test_nodefer_leaves_the_signal_unblocked(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGUSR1, SA_NODEFER)
    system.send(process, Signal.SIGUSR1)
    take_for_handler(process.first_thread)
    assert process.signals.mask == 0


def test_resethand_restores_the_default_before_the_handler_runs(
    system: System, process: Process
) -> None:
    system.handle(process, Signal.SIGUSR1, SA_RESETHAND | SA_NODEFER)
    system.send(process, Signal.SIGUSR1)
    assert take_for_handler(process.first_thread) is not None
    system.send(process, Signal.SIGUSR1)
    assert process.exit_status == Signal.SIGUSR1


def test_the_signal_that_is_handled_decides_about_restart(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGUSR1, SA_RESTART)
    system.handle(process, Signal.SIGHUP)
    system.send(process, Signal.SIGUSR1)
    assert restarts(process.first_thread)
    system.send(process, Signal.SIGHUP)
    assert not restarts(process.first_thread)


def test_a_fatal_signal_does_not_wait_for_a_handler(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGHUP)
    system.send(process, Signal.SIGHUP, Signal.SIGTERM)
    assert process.exit_status == Signal.SIGTERM


def test_a_handler_entered_from_sigsuspend_returns_to_the_mask_before_it(
    system: System, process: Process
) -> None:
    process.signals.set_mask(mask_of(Signal.SIGUSR1))
    process.signals.saved_mask = process.signals.mask
    process.signals.set_mask(0)
    system.handle(process, Signal.SIGUSR1)
    system.send(process, Signal.SIGUSR1)
    taken = take_for_handler(process.first_thread)
    assert taken is not None
    assert taken.old_mask == mask_of(Signal.SIGUSR1)
    assert process.signals.saved_mask is None


def test_fork_copies_actions_and_mask_but_not_pending_signals(
    system: System, process: Process
) -> None:
    system.handle(process, Signal.SIGUSR1)
    process.signals.set_mask(mask_of(Signal.SIGUSR1))
    system.send(process, Signal.SIGUSR1)
    child = system.fork(process)
    assert child.signals.action(Signal.SIGUSR1).handler == HANDLER
    assert child.signals.mask == mask_of(Signal.SIGUSR1)
    assert not child.signals.pending


def test_exec_drops_handlers_and_keeps_ignored_blocked_and_pending(
    system: System, process: Process
) -> None:
    system.handle(process, Signal.SIGUSR1)
    ignore(process, Signal.SIGUSR2)
    process.signals.set_mask(mask_of(Signal.SIGUSR1))
    system.send(process, Signal.SIGUSR1)
    process.signals.reset_for_exec()
    assert process.signals.action(Signal.SIGUSR1) == SignalAction()
    assert process.signals.action(Signal.SIGUSR2).handler == SIG_IGN
    assert process.signals.mask == process.signals.pending == mask_of(Signal.SIGUSR1)


# Stop and continue.


@pytest.mark.parametrize("signo", [Signal.SIGSTOP, Signal.SIGTSTP, Signal.SIGTTIN, Signal.SIGTTOU])
def test_stop_signals_stop_a_job_that_someone_can_continue(
    system: System, process: Process, signo: int
) -> None:
    child = system.fork(process)
    child.group = child.pid
    system.send(child, signo)
    assert child.stopped
    system.send(child, Signal.SIGCONT)
    assert not child.stopped


@pytest.mark.parametrize(
    ("signo", "stops"),
    [(Signal.SIGSTOP, True), (Signal.SIGTSTP, False), (Signal.SIGTTIN, False)],
)
def test_only_sigstop_stops_an_orphaned_group(
    system: System, process: Process, signo: int, stops: bool
) -> None:
    system.send(process, signo)
    assert process.stopped is stops


def test_sigcont_continues_even_when_ignored_or_blocked(system: System, process: Process) -> None:
    system.send(process, Signal.SIGSTOP)
    process.signals.set_mask(mask_of(Signal.SIGCONT))
    system.send(process, Signal.SIGCONT)
    assert not process.stopped
    ignore(process, Signal.SIGCONT)
    system.send(process, Signal.SIGSTOP, Signal.SIGCONT)
    assert not process.stopped


def test_stop_and_continue_cancel_each_other_while_pending(
    system: System, process: Process
) -> None:
    process.signals.set_mask(mask_of(Signal.SIGTSTP, Signal.SIGCONT))
    system.handle(process, Signal.SIGCONT)
    system.send(process, Signal.SIGTSTP, Signal.SIGCONT)
    assert process.signals.pending == mask_of(Signal.SIGCONT)
    system.send(process, Signal.SIGTSTP)
    assert process.signals.pending == mask_of(Signal.SIGTSTP)


def test_a_stopped_process_dies_of_sigterm_only_when_continued(
    system: System, process: Process
) -> None:
    system.send(process, Signal.SIGSTOP, Signal.SIGTERM)
    assert process.stopped
    assert not process.dead
    system.send(process, Signal.SIGCONT)
    assert process.exit_status == Signal.SIGTERM


def test_a_stopped_process_dies_of_sigkill_at_once(system: System, process: Process) -> None:
    system.send(process, Signal.SIGSTOP, Signal.SIGKILL)
    assert process.exit_status == Signal.SIGKILL


def test_a_stopped_process_can_be_stopped_again_without_a_second_report(
    system: System, process: Process
) -> None:
    system.send(process, Signal.SIGSTOP)
    first = process.state_change
    process.state_change = 0
    system.send(process, Signal.SIGSTOP)
    assert first
    assert not process.state_change


# Permission to send.


def test_kill_reaches_one_process_the_group_or_everybody(system: System, process: Process) -> None:
    sibling, grouped, other = (system.fork(process) for _ in range(3))
    grouped.group = other.group = grouped.pid
    stranger = system.command()
    kill(system.kernel, process, sibling.pid, Signal.SIGTERM)
    assert [p.dead for p in (sibling, grouped, other, stranger)] == [True, False, False, False]
    kill(system.kernel, process, -grouped.pid, Signal.SIGTERM)
    assert [p.dead for p in (grouped, other, stranger)] == [True, True, False]
    kill(system.kernel, process, -1, Signal.SIGTERM)
    assert (stranger.dead, process.dead, system.kernel.init.dead) == (True, False, False)
    kill(system.kernel, process, 0, Signal.SIGTERM)
    assert process.dead


def test_signal_zero_only_checks(system: System, process: Process) -> None:
    child = system.fork(process)
    kill(system.kernel, process, child.pid, 0)
    assert not child.dead
    assert errno_of(lambda: kill(system.kernel, process, 999, 0)) is Errno.ESRCH


def test_an_unknown_process_is_reported_before_an_unknown_signal(
    system: System, process: Process
) -> None:
    assert errno_of(lambda: kill(system.kernel, process, 999, 99)) is Errno.ESRCH
    assert errno_of(lambda: kill(system.kernel, process, process.pid, 65)) is Errno.EINVAL
    assert errno_of(lambda: kill(system.kernel, process, process.pid, -1)) is Errno.EINVAL


def test_a_zombie_can_be_sent_signals_that_do_nothing(system: System, process: Process) -> None:
    child = system.fork(process)
    system.kernel.exit(child, 0)
    kill(system.kernel, process, child.pid, Signal.SIGKILL)
    assert child.exit_status == 0


def test_a_user_cannot_signal_another_users_process(system: System, process: Process) -> None:
    stranger = system.command(uid=2000)
    assert (
        errno_of(lambda: kill(system.kernel, process, stranger.pid, Signal.SIGTERM)) is Errno.EPERM
    )
    assert errno_of(lambda: kill(system.kernel, process, 1, Signal.SIGKILL)) is Errno.EPERM
    root = system.command(uid=0)
    kill(system.kernel, root, stranger.pid, Signal.SIGTERM)
    assert stranger.dead


def test_anybody_may_continue_a_process_of_the_same_session(
    system: System, process: Process
) -> None:
    stranger = system.command(uid=2000)
    system.send(stranger, Signal.SIGSTOP)
    assert (
        errno_of(lambda: kill(system.kernel, process, stranger.pid, Signal.SIGCONT)) is Errno.EPERM
    )
    stranger.session = process.session
    kill(system.kernel, process, stranger.pid, Signal.SIGCONT)
    assert not stranger.stopped


def test_a_group_signal_reaches_those_it_may_and_fails_only_for_none(
    system: System, process: Process
) -> None:
    mine, foreign = system.fork(process), system.command(uid=2000)
    mine.group = foreign.group = mine.pid
    kill(system.kernel, process, -mine.pid, Signal.SIGTERM)
    assert (mine.dead, foreign.dead) == (True, False)


def test_the_kernels_own_init_cannot_be_ended(system: System) -> None:
    root = system.command(uid=0)
    for signo in (Signal.SIGKILL, Signal.SIGSTOP, Signal.SIGTERM):
        kill(system.kernel, root, 1, signo)
    assert not system.kernel.init.dead
    assert not system.kernel.init.stopped


def test_the_sender_is_told_in_siginfo(system: System, process: Process) -> None:
    child = system.fork(process)
    system.handle(child, Signal.SIGUSR1)
    kill(system.kernel, process, child.pid, Signal.SIGUSR1)
    assert deliverable_handler(child.first_thread) == Signal.SIGUSR1
    info = child.signals.pending_info[Signal.SIGUSR1]
    assert (info.code, info.pid, info.uid) == (0, process.pid, 1000)
