"""Process groups, sessions, pids, the limits on processes."""

from __future__ import annotations

import pytest

from tests.kernel.system import System, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import PID_MAX, Limits
from wasmsand.kernel.process.groups import set_group, set_session
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.rlimits import NPROC, Limit


@pytest.fixture
def child(system: System, process: Process) -> Process:
    return system.fork(process)


def test_a_command_leads_a_session_and_its_children_join_it(
    process: Process, child: Process
) -> None:
    assert process.session == process.group == process.pid
    assert (child.session, child.group) == (process.pid, process.pid)


def test_a_child_can_be_put_in_a_group_of_its_own_and_another_join_it(
    system: System, process: Process, child: Process
) -> None:
    second = system.fork(process)
    set_group(system.kernel, process, child.pid, 0)
    set_group(system.kernel, second, 0, child.pid)
    assert child.group == second.group == child.pid


def test_a_session_leader_cannot_change_its_group(system: System, process: Process) -> None:
    assert errno_of(lambda: set_group(system.kernel, process, 0, 0)) is Errno.EPERM


def test_only_oneself_and_ones_children_can_be_moved(
    system: System, process: Process, child: Process
) -> None:
    grandchild = system.fork(child)
    for pid in (grandchild.pid, 999):
        assert errno_of(set_group, system.kernel, process, pid, 0) is Errno.ESRCH


def test_a_child_that_has_execed_cannot_be_moved(
    system: System, process: Process, child: Process
) -> None:
    child.has_execed = True
    assert errno_of(lambda: set_group(system.kernel, process, child.pid, 0)) is Errno.EACCES
    set_group(system.kernel, child, 0, 0)
    assert child.group == child.pid


def test_a_child_in_another_session_cannot_be_moved_even_if_it_has_execed(
    system: System, process: Process, child: Process
) -> None:
    set_session(system.kernel, child)
    child.has_execed = True
    assert errno_of(lambda: set_group(system.kernel, process, child.pid, 0)) is Errno.EPERM


def test_a_group_of_another_session_or_of_nobody_cannot_be_joined(
    system: System, child: Process
) -> None:
    stranger = system.command()
    for group in (stranger.group, 999):
        assert errno_of(set_group, system.kernel, child, 0, group) is Errno.EPERM
    assert errno_of(lambda: set_group(system.kernel, child, 0, -1)) is Errno.EINVAL


def test_setsid_makes_a_new_session_without_terminal(
    system: System, process: Process, child: Process
) -> None:
    process.terminal = child.terminal = system.kernel.new_terminal(1000, 1000)
    assert set_session(system.kernel, child) == child.pid
    assert child.session == child.group == child.pid
    assert child.terminal is None


def test_a_group_leader_cannot_make_a_session_even_with_its_group_elsewhere(
    system: System, process: Process, child: Process
) -> None:
    assert errno_of(lambda: set_session(system.kernel, process)) is Errno.EPERM
    grandchild = system.fork(child)
    set_group(system.kernel, child, grandchild.pid, 0)
    child.group = grandchild.pid
    grandchild.group = process.group
    assert errno_of(lambda: set_session(system.kernel, grandchild)) is Errno.EPERM


# Pids and limits.


def test_pids_grow_and_are_not_reused_at_once(system: System, process: Process) -> None:
    first = system.fork(process)
    system.kernel.exit(first, 0)
    assert system.fork(process).pid == first.pid + 1


def test_after_a_wrap_the_number_of_a_living_group_is_not_given_out(
    system: System, process: Process
) -> None:
    leader = system.fork(process)
    member = system.fork(process)
    leader.group = member.group = leader.pid
    system.kernel.exit(leader, 0)
    process.children.pop(leader.pid)
    system.kernel.processes.remove(leader)
    table = system.kernel.processes
    numbers = [table.allocate_pid() for _ in range(PID_MAX + 10)]
    assert max(numbers) == PID_MAX
    taken = {1, process.pid, leader.pid, member.pid}
    assert not taken & set(numbers)


def test_the_sandboxs_limit_of_processes_is_eagain() -> None:
    system = System(Limits(max_processes=3))
    first = system.command()
    system.fork(first)
    third = system.fork(first)
    assert errno_of(lambda: system.fork(first)) is Errno.EAGAIN
    assert errno_of(system.command) is Errno.EAGAIN
    assert len(system.kernel.processes) == 4
    system.kernel.exit(third, 0)
    assert errno_of(lambda: system.fork(first)) is Errno.EAGAIN, "a zombie counts"


def test_rlimit_nproc_counts_the_users_processes(system: System, process: Process) -> None:
    process.rlimits.set(NPROC, Limit(3, 64), privileged=False)
    system.command(uid=2000)
    system.fork(process)
    system.fork(process)
    assert errno_of(lambda: system.fork(process)) is Errno.EAGAIN
    assert len(process.fds) == 0


def test_rlimit_nproc_does_not_bind_root(system: System) -> None:
    root = system.command(uid=0)
    root.rlimits.set(NPROC, Limit(1, 1), privileged=True)
    system.fork(root)
    system.fork(root)
