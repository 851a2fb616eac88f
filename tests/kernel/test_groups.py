"""Process groups, sessions, pids, the limits on processes."""

from __future__ import annotations

import pytest

from tests.kernel.computer import Computer, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import PID_MAX, Limits
from wasmsand.kernel.process.groups import set_group, set_session
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.rlimits import NPROC, Limit


@pytest.fixture
def child(computer: Computer, process: Process) -> Process:
    return computer.fork(process)


def test_a_command_leads_a_session_and_its_children_join_it(
    process: Process, child: Process
) -> None:
    assert process.session == process.group == process.pid
    assert (child.session, child.group) == (process.pid, process.pid)


def test_a_child_can_be_put_in_a_group_of_its_own_and_another_join_it(
    computer: Computer, process: Process, child: Process
) -> None:
    second = computer.fork(process)
    set_group(computer.kernel, process, child.pid, 0)
    set_group(computer.kernel, second, 0, child.pid)
    assert child.group == second.group == child.pid


def test_a_session_leader_cannot_change_its_group(computer: Computer, process: Process) -> None:
    assert errno_of(lambda: set_group(computer.kernel, process, 0, 0)) is Errno.EPERM


def test_only_oneself_and_ones_children_can_be_moved(
    computer: Computer, process: Process, child: Process
) -> None:
    grandchild = computer.fork(child)
    for pid in (grandchild.pid, 999):
        assert errno_of(set_group, computer.kernel, process, pid, 0) is Errno.ESRCH


def test_a_child_that_has_execed_cannot_be_moved(
    computer: Computer, process: Process, child: Process
) -> None:
    child.has_execed = True
    assert errno_of(lambda: set_group(computer.kernel, process, child.pid, 0)) is Errno.EACCES
    set_group(computer.kernel, child, 0, 0)
    assert child.group == child.pid


def test_a_child_in_another_session_cannot_be_moved_even_if_it_has_execed(
    computer: Computer, process: Process, child: Process
) -> None:
    set_session(computer.kernel, child)
    child.has_execed = True
    assert errno_of(lambda: set_group(computer.kernel, process, child.pid, 0)) is Errno.EPERM


def test_a_group_of_another_session_or_of_nobody_cannot_be_joined(
    computer: Computer, child: Process
) -> None:
    stranger = computer.command()
    for group in (stranger.group, 999):
        assert errno_of(set_group, computer.kernel, child, 0, group) is Errno.EPERM
    assert errno_of(lambda: set_group(computer.kernel, child, 0, -1)) is Errno.EINVAL


def test_setsid_makes_a_new_session_without_terminal(
    computer: Computer, process: Process, child: Process
) -> None:
    process.terminal = child.terminal = computer.kernel.new_terminal(1000, 1000)
    assert set_session(computer.kernel, child) == child.pid
    assert child.session == child.group == child.pid
    assert child.terminal is None


def test_a_group_leader_cannot_make_a_session_even_with_its_group_elsewhere(
    computer: Computer, process: Process, child: Process
) -> None:
    assert errno_of(lambda: set_session(computer.kernel, process)) is Errno.EPERM
    grandchild = computer.fork(child)
    set_group(computer.kernel, child, grandchild.pid, 0)
    child.group = grandchild.pid
    grandchild.group = process.group
    assert errno_of(lambda: set_session(computer.kernel, grandchild)) is Errno.EPERM


# Pids and limits.


def test_pids_grow_and_are_not_reused_at_once(computer: Computer, process: Process) -> None:
    first = computer.fork(process)
    computer.kernel.exit(first, 0)
    assert computer.fork(process).pid == first.pid + 1


def test_after_a_wrap_the_number_of_a_living_group_is_not_given_out(
    computer: Computer, process: Process
) -> None:
    leader = computer.fork(process)
    member = computer.fork(process)
    leader.group = member.group = leader.pid
    computer.kernel.exit(leader, 0)
    process.children.pop(leader.pid)
    computer.kernel.processes.remove(leader)
    table = computer.kernel.processes
    numbers = [table.allocate_pid() for _ in range(PID_MAX + 10)]
    assert max(numbers) == PID_MAX
    taken = {1, process.pid, leader.pid, member.pid}
    assert not taken & set(numbers)


def test_the_sandboxs_limit_of_processes_is_eagain() -> None:
    computer = Computer(Limits(max_processes=3))
    first = computer.command()
    computer.fork(first)
    third = computer.fork(first)
    assert errno_of(lambda: computer.fork(first)) is Errno.EAGAIN
    assert errno_of(computer.command) is Errno.EAGAIN
    assert len(computer.kernel.processes) == 4
    computer.kernel.exit(third, 0)
    assert errno_of(lambda: computer.fork(first)) is Errno.EAGAIN, "a zombie counts"


def test_rlimit_nproc_counts_the_users_processes(computer: Computer, process: Process) -> None:
    process.rlimits.set(NPROC, Limit(3, 64), privileged=False)
    computer.command(uid=2000)
    computer.fork(process)
    computer.fork(process)
    assert errno_of(lambda: computer.fork(process)) is Errno.EAGAIN
    assert len(process.fds) == 0


def test_rlimit_nproc_does_not_bind_root(computer: Computer) -> None:
    root = computer.command(uid=0)
    root.rlimits.set(NPROC, Limit(1, 1), privileged=True)
    computer.fork(root)
    computer.fork(root)
