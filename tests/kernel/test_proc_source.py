"""What /proc says of a real kernel: its processes, their use, their load."""

from __future__ import annotations

import pytest

from tests.kernel.computer import Computer
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.thread import ProcessState
from wasmsand.kernel.vfs import ROOT


def text(computer: Computer, path: bytes) -> str:
    namespace = computer.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, path)
    return namespace.read(node, 0, 1 << 20).decode()


def state(computer: Computer, pid: int) -> str:
    return text(computer, b"/proc/%d/stat" % pid).split()[2]


def test_a_process_that_computes_runs_and_one_that_waits_sleeps() -> None:
    computer = Computer()
    process = computer.command()
    assert (state(computer, process.pid), state(computer, 1)) == ("R", "S")
    process.first_thread.state = ProcessState.SLEEPING
    assert state(computer, process.pid) == "S"
    assert text(computer, b"/proc/loadavg").split()[3] == "0/2"


def test_processes_made_and_the_last_pid_are_counted() -> None:
    computer = Computer()
    process = computer.command()
    child = computer.fork(process)
    computer.kernel.exit(child, 0)
    lines = text(computer, b"/proc/stat").splitlines()
    assert "processes 3" in lines
    assert text(computer, b"/proc/loadavg").split()[4] == str(child.pid)


def test_processor_time_is_kept_when_a_process_is_gone() -> None:
    computer = Computer()
    process = computer.command()
    process.usage.user_ns = 3 * SECOND
    assert text(computer, b"/proc/stat").split()[1] == "300"
    computer.kernel.exit(process, 0)
    assert computer.kernel.processes.find(process.pid) is None
    assert text(computer, b"/proc/stat").split()[1] == "300"


def test_load_rises_with_work_and_decays() -> None:
    computer = Computer()
    process = computer.command()
    loads = []
    for seconds_of_work in (60, 0):
        computer.time.advance(60)
        process.usage.user_ns += seconds_of_work * SECOND
        loads.append([float(field) for field in text(computer, b"/proc/loadavg").split()[:3]])
    (one, five, fifteen), (later, *_) = loads
    assert one == pytest.approx(0.63, abs=0.01)
    assert one > five > fifteen > 0
    assert later == pytest.approx(0.63 * 0.37, abs=0.01)


def test_memory_is_the_limit_less_what_processes_use() -> None:
    computer = Computer(Limits(memory_limit_bytes=100 << 20))
    process = computer.command()
    process.leave_memory(MemoryAccount(computer.kernel.ledger, 24 << 20, 1 << 20))
    fields = dict(line.split()[:2] for line in text(computer, b"/proc/meminfo").splitlines())
    assert (fields["MemTotal:"], fields["MemFree:"]) == ("102400", "76800")
    assert text(computer, b"/proc/%d/oom_score" % process.pid) == "250\n"


def test_the_boot_id_stays_and_differs_between_sandboxes() -> None:
    path = b"/proc/sys/kernel/random/boot_id"
    first, second = Computer(), Computer()
    assert text(first, path) == text(first, path) != text(second, path)


def test_children_are_listed_by_their_parents_task() -> None:
    computer = Computer()
    process = computer.command()
    children = [computer.fork(process).pid for _ in range(2)]
    path = b"/proc/%d/task/%d/children" % (process.pid, process.pid)
    assert text(computer, path) == "".join(f"{pid} " for pid in children)


def test_the_program_can_be_opened_by_its_link() -> None:
    computer = Computer()
    computer.make_file(b"/tmp/program", b"\0asm", 0o755)
    process = computer.command()
    process.executable = b"/tmp/program"
    assert text(computer, b"/proc/%d/exe" % process.pid) == "\0asm"
