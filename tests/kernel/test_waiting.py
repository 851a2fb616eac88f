"""wait4 and waitid report each change once and in order; SIGCHLD; orphans."""

from __future__ import annotations

import pytest

from tests.kernel.computer import Computer, Woken, blocks, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import WCONTINUED, WEXITED, WNOHANG, WNOWAIT, WUNTRACED
from wasmsand.kernel.process.delivery import (
    CLD_CONTINUED,
    CLD_DUMPED,
    CLD_EXITED,
    CLD_KILLED,
    CLD_STOPPED,
    CONTINUED_STATUS,
)
from wasmsand.kernel.process.life import WaitResult, exit_code_and_value, wait
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import (
    SA_NOCLDSTOP,
    SA_NOCLDWAIT,
    SIG_IGN,
    Signal,
    SignalAction,
    mask_of,
)

STOPPED = 0x7F | Signal.SIGSTOP << 8
ANY = -1


@pytest.fixture
def child(computer: Computer, process: Process) -> Process:
    return computer.fork(process)


def ask(
    computer: Computer, process: Process, which: int = ANY, options: int = WEXITED | WNOHANG
) -> WaitResult | None:
    return wait(computer.kernel, process, which, options)


def status(
    computer: Computer, process: Process, which: int = ANY, options: int = WEXITED | WNOHANG
) -> int | None:
    result = ask(computer, process, which, options)
    return None if result is None else result.status


def test_an_exit_is_reported_once(computer: Computer, process: Process, child: Process) -> None:
    computer.kernel.exit(child, 3 << 8)
    assert status(computer, process) == 3 << 8
    assert errno_of(lambda: ask(computer, process)) is Errno.ECHILD
    assert computer.kernel.processes.find(child.pid) is None


def test_a_running_child_blocks_the_wait_until_it_ends(
    computer: Computer, process: Process, child: Process
) -> None:
    assert ask(computer, process) is None
    woken = Woken(blocks(lambda: ask(computer, process, options=WEXITED)))
    computer.kernel.exit(child, 0)
    assert woken
    assert status(computer, process, options=WEXITED) == 0


def test_no_children_is_echild(computer: Computer, process: Process, child: Process) -> None:
    assert errno_of(lambda: ask(computer, child)) is Errno.ECHILD
    assert errno_of(lambda: ask(computer, process, process.pid)) is Errno.ECHILD
    assert errno_of(lambda: ask(computer, process, 999)) is Errno.ECHILD


def test_children_are_chosen_by_pid_or_group(computer: Computer, process: Process) -> None:
    first, second, third = (computer.fork(process) for _ in range(3))
    second.group = third.group = second.pid
    for one in (first, second, third):
        computer.kernel.exit(one, one.pid << 8)
    results = [ask(computer, process, which) for which in (third.pid, -second.pid, 0)]
    assert [r.pid if r else None for r in results] == [third.pid, second.pid, first.pid]


def test_nowait_leaves_the_report_for_the_next_wait(
    computer: Computer, process: Process, child: Process
) -> None:
    computer.kernel.exit(child, 7 << 8)
    for _ in range(2):
        assert status(computer, process, options=WEXITED | WNOWAIT) == 7 << 8
    assert status(computer, process) == 7 << 8


def test_a_stop_is_reported_once_and_only_when_asked_for(
    computer: Computer, process: Process, child: Process
) -> None:
    computer.send(child, Signal.SIGSTOP)
    assert ask(computer, process) is None
    assert status(computer, process, options=WEXITED | WUNTRACED) == STOPPED
    assert ask(computer, process, options=WEXITED | WUNTRACED | WNOHANG) is None


def test_a_continue_replaces_the_report_of_the_stop(
    computer: Computer, process: Process, child: Process
) -> None:
    computer.send(child, Signal.SIGSTOP, Signal.SIGCONT)
    assert ask(computer, process, options=WEXITED | WUNTRACED | WNOHANG) is None
    assert status(computer, process, options=WCONTINUED) == CONTINUED_STATUS
    assert ask(computer, process, options=WCONTINUED | WNOHANG) is None


def test_another_stop_replaces_the_report_of_the_continue(
    computer: Computer, process: Process, child: Process
) -> None:
    computer.send(child, Signal.SIGSTOP, Signal.SIGCONT, Signal.SIGSTOP)
    assert ask(computer, process, options=WCONTINUED | WNOHANG) is None
    assert status(computer, process, options=WUNTRACED) == STOPPED


def test_a_dead_child_reports_its_death_only(
    computer: Computer, process: Process, child: Process
) -> None:
    computer.send(child, Signal.SIGSTOP, Signal.SIGKILL)
    assert errno_of(lambda: ask(computer, process, options=WUNTRACED | WNOHANG)) is Errno.ECHILD
    assert status(computer, process, options=WEXITED | WUNTRACED) == Signal.SIGKILL


@pytest.mark.parametrize(
    ("wait_status", "code", "value"),
    [
        (0, CLD_EXITED, 0),
        (255 << 8, CLD_EXITED, 255),
        (Signal.SIGTERM, CLD_KILLED, Signal.SIGTERM),
        (Signal.SIGSEGV | 0x80, CLD_DUMPED, Signal.SIGSEGV),
        (STOPPED, CLD_STOPPED, Signal.SIGSTOP),
        (CONTINUED_STATUS, CLD_CONTINUED, Signal.SIGCONT),
    ],
)
def test_siginfo_of_a_wait_status(wait_status: int, code: int, value: int) -> None:
    assert exit_code_and_value(wait_status) == (code, value)


# SIGCHLD.


def test_a_death_sends_sigchld_with_its_cause(
    computer: Computer, process: Process, child: Process
) -> None:
    computer.handle(process, Signal.SIGCHLD)
    computer.kernel.exit(child, 5 << 8)
    info = process.signals.pending_info[Signal.SIGCHLD]
    assert (info.code, info.pid, info.uid, info.status) == (CLD_EXITED, child.pid, 1000, 5)


@pytest.mark.parametrize(("flags", "told"), [(0, True), (SA_NOCLDSTOP, False)])
def test_stops_send_sigchld_unless_nocldstop(
    computer: Computer, process: Process, child: Process, flags: int, told: bool
) -> None:
    computer.handle(process, Signal.SIGCHLD, flags)
    computer.send(child, Signal.SIGSTOP)
    assert bool(process.signals.pending) is told
    assert status(computer, process, options=WUNTRACED) == STOPPED


@pytest.mark.parametrize(
    "action", [SignalAction(SIG_IGN), SignalAction(0, SA_NOCLDWAIT)], ids=["SIG_IGN", "NOCLDWAIT"]
)
def test_children_of_an_uninterested_parent_leave_no_zombies(
    computer: Computer, process: Process, child: Process, action: SignalAction
) -> None:
    process.signals.set_action(Signal.SIGCHLD, action)
    woken = Woken(blocks(lambda: ask(computer, process, options=WEXITED)))
    computer.kernel.exit(child, 0)
    assert woken
    assert errno_of(lambda: ask(computer, process, options=WEXITED)) is Errno.ECHILD
    assert computer.kernel.processes.find(child.pid) is None


def test_an_ignored_sigchld_is_not_even_pending_when_blocked(
    computer: Computer, process: Process, child: Process
) -> None:
    process.signals.set_action(Signal.SIGCHLD, SignalAction(SIG_IGN))
    process.signals.set_mask(mask_of(Signal.SIGCHLD))
    computer.kernel.exit(child, 0)
    assert not process.signals.pending


# Orphans.


def test_orphans_become_children_of_init_and_are_reaped_at_once(
    computer: Computer, process: Process, child: Process
) -> None:
    grandchild = computer.fork(child)
    computer.kernel.exit(child, 0)
    assert grandchild.parent is computer.kernel.init
    computer.kernel.exit(grandchild, 0)
    assert computer.kernel.processes.find(grandchild.pid) is None


def test_zombies_of_a_dying_parent_are_reaped(
    computer: Computer, process: Process, child: Process
) -> None:
    grandchild = computer.fork(child)
    computer.kernel.exit(grandchild, 0)
    assert computer.kernel.processes.find(grandchild.pid) is grandchild
    computer.kernel.exit(child, 0)
    assert computer.kernel.processes.find(grandchild.pid) is None


def test_a_stopped_job_whose_shell_dies_is_hung_up(
    computer: Computer, process: Process, child: Process
) -> None:
    child.group = child.pid
    computer.send(child, Signal.SIGSTOP)
    computer.kernel.exit(process, 0)
    assert (child.dead, child.exit_status) == (True, Signal.SIGHUP)


def test_a_running_job_whose_shell_dies_is_left_alone(
    computer: Computer, process: Process, child: Process
) -> None:
    child.group = child.pid
    computer.kernel.exit(process, 0)
    assert not child.dead


def test_a_group_that_was_orphaned_before_is_not_hung_up_by_other_deaths(
    computer: Computer, process: Process
) -> None:
    computer.send(process, Signal.SIGSTOP)
    stranger = computer.command()
    computer.kernel.exit(computer.fork(stranger), 0)
    computer.kernel.exit(stranger, 0)
    assert process.stopped


def test_usage_of_waited_children_is_inherited(
    computer: Computer, process: Process, child: Process
) -> None:
    grandchild = computer.fork(child)
    grandchild.usage.user_ns, grandchild.usage.max_memory = 5, 900
    child.usage.user_ns = 10
    computer.kernel.exit(grandchild, 0)
    ask(computer, child)
    computer.kernel.exit(child, 0)
    ask(computer, process)
    assert (process.children_usage.user_ns, process.children_usage.max_memory) == (15, 900)
