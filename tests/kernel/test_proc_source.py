"""What /proc shows of a real kernel: processes, their usage, the load."""

from __future__ import annotations

import pytest

from tests.kernel.system import System
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.thread import ProcessState
from wasmsand.kernel.vfs import ROOT


def text(system: System, path: bytes) -> str:
    namespace = system.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, path)
    return namespace.read(node, 0, 1 << 20).decode()


def state(system: System, pid: int) -> str:
    return text(system, b"/proc/%d/stat" % pid).split()[2]


def test_a_process_that_computes_runs_and_one_that_waits_sleeps() -> None:
    system = System()
    process = system.command()
    assert (state(system, process.pid), state(system, 1)) == ("R", "S")
    process.first_thread.state = ProcessState.SLEEPING
    assert state(system, process.pid) == "S"
    assert text(system, b"/proc/loadavg").split()[3] == "0/2"


def test_processes_made_and_the_last_pid_are_counted() -> None:
    system = System()
    process = system.command()
    child = system.fork(process)
    system.kernel.exit(child, 0)
    lines = text(system, b"/proc/stat").splitlines()
    assert "processes 3" in lines
    assert text(system, b"/proc/loadavg").split()[4] == str(child.pid)


def test_processor_time_is_kept_when_a_process_is_gone() -> None:
    system = System()
    process = system.command()
    process.usage.user_ns = 3 * SECOND
    assert text(system, b"/proc/stat").split()[1] == "300"
    system.kernel.exit(process, 0)
    assert system.kernel.processes.find(process.pid) is None
    assert text(system, b"/proc/stat").split()[1] == "300"


def test_load_rises_with_work_and_decays() -> None:
    system = System()
    process = system.command()
    loads = []
    for seconds_of_work in (60, 0):
        system.clock.advance(60)
        process.usage.user_ns += seconds_of_work * SECOND
        loads.append([float(field) for field in text(system, b"/proc/loadavg").split()[:3]])
    (one, five, fifteen), (later, *_) = loads
    assert one == pytest.approx(0.63, abs=0.01)
    assert one > five > fifteen > 0
    assert later == pytest.approx(0.63 * 0.37, abs=0.01)


def test_memory_is_the_limit_less_what_processes_use() -> None:
    system = System(Limits(memory_limit_bytes=100 << 20))
    process = system.command()
    process.leave_memory(MemoryAccount(system.kernel.ledger, 24 << 20, 1 << 20))
    fields = dict(line.split()[:2] for line in text(system, b"/proc/meminfo").splitlines())
    assert (fields["MemTotal:"], fields["MemFree:"]) == ("102400", "76800")
    assert text(system, b"/proc/%d/oom_score" % process.pid) == "250\n"


def test_the_boot_id_stays_and_differs_between_sandboxes() -> None:
    path = b"/proc/sys/kernel/random/boot_id"
    first, second = System(), System()
    assert text(first, path) == text(first, path) != text(second, path)


def test_children_are_listed_by_their_parents_task() -> None:
    system = System()
    process = system.command()
    children = [system.fork(process).pid for _ in range(2)]
    path = b"/proc/%d/task/%d/children" % (process.pid, process.pid)
    assert text(system, path) == "".join(f"{pid} " for pid in children)


def test_the_program_can_be_opened_by_its_link() -> None:
    system = System()
    system.make_file(b"/tmp/program", b"\0asm", 0o755)
    process = system.command()
    process.executable = b"/tmp/program"
    assert text(system, b"/proc/%d/exe" % process.pid) == "\0asm"


def test_limits_without_a_bound_are_shown_as_unlimited() -> None:
    system = System()
    process = system.command()
    rows = text(system, b"/proc/%d/limits" % process.pid).splitlines()
    assert rows[1].split() == ["Max", "cpu", "time", "unlimited", "unlimited", "seconds"]
    assert rows[4].split() == ["Max", "stack", "size", "8388608", "unlimited", "bytes"]
