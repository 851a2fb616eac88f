"""wait4 and waitid report each change once and in order; SIGCHLD; orphans."""

from __future__ import annotations

import pytest

from tests.kernel.system import System, Woken, blocks, errno_of
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
def child(system: System, process: Process) -> Process:
    return system.fork(process)


def ask(
    system: System, process: Process, which: int = ANY, options: int = WEXITED | WNOHANG
) -> WaitResult | None:
    return wait(system.kernel, process, which, options)


def status(
    system: System, process: Process, which: int = ANY, options: int = WEXITED | WNOHANG
) -> int | None:
    result = ask(system, process, which, options)
    return None if result is None else result.status


def test_an_exit_is_reported_once(system: System, process: Process, child: Process) -> None:
    system.kernel.exit(child, 3 << 8)
    assert status(system, process) == 3 << 8
    assert errno_of(lambda: ask(system, process)) is Errno.ECHILD
    assert system.kernel.processes.find(child.pid) is None


def test_a_running_child_blocks_the_wait_until_it_ends(
    system: System, process: Process, child: Process
) -> None:
    assert ask(system, process) is None
    woken = Woken(blocks(lambda: ask(system, process, options=WEXITED)))
    system.kernel.exit(child, 0)
    assert woken
    assert status(system, process, options=WEXITED) == 0


def test_no_children_is_echild(system: System, process: Process, child: Process) -> None:
    assert errno_of(lambda: ask(system, child)) is Errno.ECHILD
    assert errno_of(lambda: ask(system, process, process.pid)) is Errno.ECHILD
    assert errno_of(lambda: ask(system, process, 999)) is Errno.ECHILD


def test_children_are_chosen_by_pid_or_group(system: System, process: Process) -> None:
    first, second, third = (system.fork(process) for _ in range(3))
    second.group = third.group = second.pid
    for one in (first, second, third):
        system.kernel.exit(one, one.pid << 8)
    results = [ask(system, process, which) for which in (third.pid, -second.pid, 0)]
    assert [r.pid if r else None for r in results] == [third.pid, second.pid, first.pid]


def test_nowait_leaves_the_report_for_the_next_wait(
    system: System, process: Process, child: Process
) -> None:
    system.kernel.exit(child, 7 << 8)
    for _ in range(2):
        assert status(system, process, options=WEXITED | WNOWAIT) == 7 << 8
    assert status(system, process) == 7 << 8


def test_a_stop_is_reported_once_and_only_when_asked_for(
    system: System, process: Process, child: Process
) -> None:
    system.send(child, Signal.SIGSTOP)
    assert ask(system, process) is None
    assert status(system, process, options=WEXITED | WUNTRACED) == STOPPED
    assert ask(system, process, options=WEXITED | WUNTRACED | WNOHANG) is None


def test_a_continue_replaces_the_report_of_the_stop(
    system: System, process: Process, child: Process
) -> None:
    system.send(child, Signal.SIGSTOP, Signal.SIGCONT)
    assert ask(system, process, options=WEXITED | WUNTRACED | WNOHANG) is None
    assert status(system, process, options=WCONTINUED) == CONTINUED_STATUS
    assert ask(system, process, options=WCONTINUED | WNOHANG) is None


def test_another_stop_replaces_the_report_of_the_continue(
    system: System, process: Process, child: Process
) -> None:
    system.send(child, Signal.SIGSTOP, Signal.SIGCONT, Signal.SIGSTOP)
    assert ask(system, process, options=WCONTINUED | WNOHANG) is None
    assert status(system, process, options=WUNTRACED) == STOPPED


def test_a_dead_child_reports_its_death_only(
    system: System, process: Process, child: Process
) -> None:
    system.send(child, Signal.SIGSTOP, Signal.SIGKILL)
    assert errno_of(lambda: ask(system, process, options=WUNTRACED | WNOHANG)) is Errno.ECHILD
    assert status(system, process, options=WEXITED | WUNTRACED) == Signal.SIGKILL


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
    system: System, process: Process, child: Process
) -> None:
    system.handle(process, Signal.SIGCHLD)
    system.kernel.exit(child, 5 << 8)
    info = process.signals.pending_info[Signal.SIGCHLD]
    assert (info.code, info.pid, info.uid, info.status) == (CLD_EXITED, child.pid, 1000, 5)


@pytest.mark.parametrize(("flags", "told"), [(0, True), (SA_NOCLDSTOP, False)])
def test_stops_send_sigchld_unless_nocldstop(
    system: System, process: Process, child: Process, flags: int, told: bool
) -> None:
    system.handle(process, Signal.SIGCHLD, flags)
    system.send(child, Signal.SIGSTOP)
    assert bool(process.signals.pending) is told
    assert status(system, process, options=WUNTRACED) == STOPPED


@pytest.mark.parametrize(
    "action", [SignalAction(SIG_IGN), SignalAction(0, SA_NOCLDWAIT)], ids=["SIG_IGN", "NOCLDWAIT"]
)
def test_children_of_an_uninterested_parent_leave_no_zombies(
    system: System, process: Process, child: Process, action: SignalAction
) -> None:
    process.signals.set_action(Signal.SIGCHLD, action)
    woken = Woken(blocks(lambda: ask(system, process, options=WEXITED)))
    system.kernel.exit(child, 0)
    assert woken
    assert errno_of(lambda: ask(system, process, options=WEXITED)) is Errno.ECHILD
    assert system.kernel.processes.find(child.pid) is None


def test_an_ignored_sigchld_is_not_even_pending_when_blocked(
    system: System, process: Process, child: Process
) -> None:
    process.signals.set_action(Signal.SIGCHLD, SignalAction(SIG_IGN))
    process.signals.set_mask(mask_of(Signal.SIGCHLD))
    system.kernel.exit(child, 0)
    assert not process.signals.pending


# Orphans.


def test_orphans_become_children_of_init_and_are_reaped_at_once(
    system: System, process: Process, child: Process
) -> None:
    grandchild = system.fork(child)
    system.kernel.exit(child, 0)
    assert grandchild.parent is system.kernel.init
    system.kernel.exit(grandchild, 0)
    assert system.kernel.processes.find(grandchild.pid) is None


def test_zombies_of_a_dying_parent_are_reaped(
    system: System, process: Process, child: Process
) -> None:
    grandchild = system.fork(child)
    system.kernel.exit(grandchild, 0)
    assert system.kernel.processes.find(grandchild.pid) is grandchild
    system.kernel.exit(child, 0)
    assert system.kernel.processes.find(grandchild.pid) is None


def test_a_stopped_job_whose_shell_dies_is_hung_up(
    system: System, process: Process, child: Process
) -> None:
    child.group = child.pid
    system.send(child, Signal.SIGSTOP)
    system.kernel.exit(process, 0)
    assert (child.dead, child.exit_status) == (True, Signal.SIGHUP)


def test_a_running_job_whose_shell_dies_is_left_alone(
    system: System, process: Process, child: Process
) -> None:
    child.group = child.pid
    system.kernel.exit(process, 0)
    assert not child.dead


def test_a_group_that_was_orphaned_before_is_not_hung_up_by_other_deaths(
    system: System, process: Process
) -> None:
    system.send(process, Signal.SIGSTOP)
    stranger = system.command()
    system.kernel.exit(system.fork(stranger), 0)
    system.kernel.exit(stranger, 0)
    assert process.stopped


def test_usage_of_waited_children_is_inherited(
    system: System, process: Process, child: Process
) -> None:
    grandchild = system.fork(child)
    grandchild.usage.user_ns, grandchild.usage.max_memory = 5, 900
    child.usage.user_ns = 10
    system.kernel.exit(grandchild, 0)
    ask(system, child)
    system.kernel.exit(child, 0)
    ask(system, process)
    assert (process.children_usage.user_ns, process.children_usage.max_memory) == (15, 900)
