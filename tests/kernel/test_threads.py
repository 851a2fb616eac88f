"""Threads of a process in the kernel: what they share, signals, ends, futexes."""

from __future__ import annotations

import pytest

from tests.kernel.system import HANDLER, System, Woken, blocks, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process import futex
from wasmsand.kernel.process.delivery import (
    SI_TKILL,
    act_on_pending,
    deliverable_handler,
    interrupts,
    kill,
    post_to_thread,
    take_for_handler,
)
from wasmsand.kernel.process.life import fork
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import Signal, SignalAction, SignalInfo, mask_of
from wasmsand.kernel.process.thread import ProcessState, Thread
from wasmsand.kernel.process.thread_life import end_thread, new_thread, only_thread, thread_of
from wasmsand.kernel.wait import WouldBlock

ANY = 0xFFFF_FFFF


@pytest.fixture
def threads(system: System, process: Process) -> list[Thread]:
    """The three threads of one process."""
    first = process.first_thread
    return [first, *(new_thread(system.kernel, first) for _ in range(2))]


def test_threads_have_numbers_and_the_pid_of_their_process(
    process: Process, threads: list[Thread]
) -> None:
    assert [thread.process.pid for thread in threads] == [process.pid] * 3
    assert threads[0].tid == process.pid
    assert len({thread.tid for thread in threads}) == 3
    assert list(process.threads) == threads


def test_threads_share_their_process(process: Process, threads: list[Thread]) -> None:
    assert all(thread.process is process for thread in threads)
    assert list(process.threads) == threads


def test_each_thread_has_a_mask_a_name_and_a_state_of_its_own(threads: list[Thread]) -> None:
    threads[0].signals.set_mask(5)
    threads[1].name = b"worker"
    threads[2].state = ProcessState.SLEEPING
    assert (threads[1].signals.mask, threads[2].name, threads[1].state) == (
        0,
        b"",
        ProcessState.RUNNING,
    )


def test_a_new_thread_has_the_mask_of_its_maker(system: System, threads: list[Thread]) -> None:
    threads[1].signals.set_mask(8)
    assert new_thread(system.kernel, threads[1]).signals.mask == 8


def test_a_child_of_a_thread_is_a_child_of_the_process(
    system: System, process: Process, threads: list[Thread]
) -> None:
    threads[1].signals.set_mask(8)
    child = fork(system.kernel, threads[1])
    assert child.parent is process
    assert (child.signals.mask, len(child.threads)) == (8, 1)
    assert child.pid in process.children


def test_the_end_of_a_process_is_the_end_of_its_threads(
    system: System, process: Process, threads: list[Thread]
) -> None:
    woken = Woken(WouldBlock((threads[2].signal_queue,)))
    system.kernel.exit(threads[1].process, 3 << 8)
    assert process.dead
    assert process.exit_status == 3 << 8
    assert [thread.dead for thread in threads] == [True] * 3
    assert woken
    assert system.kernel.processes.find_thread(threads[2].tid) is None


def test_a_process_ends_with_its_last_thread(
    system: System, process: Process, threads: list[Thread]
) -> None:
    for thread in (threads[0], threads[2]):
        end_thread(system.kernel, thread, 0)
        assert thread.dead
        assert not process.dead
    end_thread(system.kernel, threads[1], 9 << 8)
    assert (process.dead, process.exit_status) == (True, 9 << 8)


def test_exec_leaves_the_thread_that_did_it(
    system: System, process: Process, threads: list[Thread]
) -> None:
    threads[1].signals.set_mask(8)
    only_thread(system.kernel, threads[1])
    assert (threads[0].dead, threads[2].dead, process.dead) == (True, True, False)
    assert (process.signals.mask, list(process.threads)) == (8, [threads[1]])
    assert (threads[1].tid, process.is_threaded) == (process.pid, False)


def test_a_signal_without_handler_ends_all(
    system: System, process: Process, threads: list[Thread]
) -> None:
    threads[0].signals.set_mask(mask_of(Signal.SIGTERM))
    system.send(process, Signal.SIGTERM)
    assert (process.dead, process.exit_status) == (True, Signal.SIGTERM)


def test_a_signal_that_all_block_waits_for_one_that_does_not(
    system: System, process: Process, threads: list[Thread]
) -> None:
    for thread in threads:
        thread.signals.set_mask(mask_of(Signal.SIGTERM))
    system.send(process, Signal.SIGTERM)
    assert not process.dead
    threads[2].signals.set_mask(0)
    act_on_pending(system.kernel, threads[2])
    assert process.dead


def test_a_handled_signal_goes_to_the_first_thread_that_takes_it(
    system: System, process: Process, threads: list[Thread]
) -> None:
    system.handle(process, Signal.SIGUSR1)
    threads[0].signals.set_mask(mask_of(Signal.SIGUSR1))
    woken = [Woken(WouldBlock((thread.signal_queue,))) for thread in threads]
    system.send(process, Signal.SIGUSR1)
    assert [bool(one) for one in woken] == [False, True, False]
    assert interrupts(threads[1])
    taken = take_for_handler(threads[1])
    assert taken is not None
    assert taken.info.signo == Signal.SIGUSR1
    assert [deliverable_handler(thread) for thread in threads] == [0, 0, 0]


def test_a_signal_left_by_an_ended_thread_goes_to_the_others(
    system: System, process: Process, threads: list[Thread]
) -> None:
    system.handle(process, Signal.SIGUSR1)
    threads[0].signals.set_mask(mask_of(Signal.SIGUSR1))
    system.send(process, Signal.SIGUSR1)
    woken = Woken(WouldBlock((threads[2].signal_queue,)))
    end_thread(system.kernel, threads[1], 0)
    assert woken
    assert interrupts(threads[2])


def test_a_signal_to_the_process_is_not_taken_by_the_thread_that_sent_it(
    system: System, process: Process, threads: list[Thread]
) -> None:
    system.handle(process, Signal.SIGUSR1)
    kill(system.kernel, threads[2].process, process.pid, Signal.SIGUSR1)
    assert [interrupts(thread) for thread in threads] == [True, False, False]


def test_a_signal_that_its_thread_blocks_first_goes_to_another(
    system: System, process: Process, threads: list[Thread]
) -> None:
    system.handle(process, Signal.SIGUSR1)
    system.send(process, Signal.SIGUSR1)
    threads[0].signals.set_mask(mask_of(Signal.SIGUSR1))
    act_on_pending(system.kernel, threads[0])
    assert [interrupts(thread) for thread in threads] == [False, True, False]


def test_a_signal_to_a_thread_reaches_no_other_thread(
    system: System, process: Process, threads: list[Thread]
) -> None:
    system.handle(process, Signal.SIGUSR1)
    post_to_thread(system.kernel, threads[1], SignalInfo(Signal.SIGUSR1, SI_TKILL))
    assert [interrupts(thread) for thread in threads] == [False, True, False]
    taken = take_for_handler(threads[1])
    assert taken is not None
    assert taken.info.code == SI_TKILL
    assert not threads[1].signals.pending


def test_a_thread_sets_actions_for_all(
    system: System, process: Process, threads: list[Thread]
) -> None:
    threads[1].signals.set_action(Signal.SIGUSR1, SignalAction(HANDLER))
    assert process.signals.caught_set() == mask_of(Signal.SIGUSR1)
    assert threads[2].signals.caught_set() == mask_of(Signal.SIGUSR1)


def test_threads_stop_and_go_on_together(
    system: System, process: Process, threads: list[Thread]
) -> None:
    system.send(process, Signal.SIGSTOP)
    assert [thread.stopped for thread in threads] == [True] * 3
    assert process.state is ProcessState.STOPPED
    system.send(process, Signal.SIGCONT)
    assert [thread.stopped for thread in threads] == [False] * 3


def test_threads_are_found_by_number(system: System, threads: list[Thread]) -> None:
    kernel = system.kernel
    assert thread_of(kernel, threads[2].tid) is threads[2]
    assert thread_of(kernel, threads[0].tid, threads[0].process.pid) is threads[0]
    assert errno_of(thread_of, kernel, threads[1].tid, threads[1].tid) is Errno.ESRCH
    assert errno_of(thread_of, kernel, 9999) is Errno.ESRCH


def test_threads_count_towards_the_limit_of_processes() -> None:
    system = System(Limits(max_processes=6))
    first = system.command().first_thread
    made = 0
    while made < 10:
        try:
            new_thread(system.kernel, first)
        except Exception:
            break
        made += 1
    assert 3 <= made <= 5
    assert errno_of(fork, system.kernel, first) is Errno.EAGAIN


def test_a_woken_waiter_goes_on_and_the_others_sleep(threads: list[Thread]) -> None:
    waits = [blocks(lambda t=thread: futex.wait(t, 64, ANY, 0, None)) for thread in threads]  # type: ignore[misc]
    woken = [Woken(wait) for wait in waits]
    assert futex.wake(threads[0].process, 64, 2, ANY) == 2
    assert [bool(one) for one in woken] == [True, True, False]
    futex.wait(threads[0], 64, ANY, 0, None)
    futex.wait(threads[1], 64, ANY, 0, None)
    blocks(lambda: futex.wait(threads[2], 64, ANY, 0, None))


def test_bits_choose_who_is_woken(threads: list[Thread]) -> None:
    blocks(lambda: futex.wait(threads[0], 64, 1, 0, None))
    blocks(lambda: futex.wait(threads[1], 64, 2, 0, None))
    assert futex.wake(threads[2].process, 64, 10, 2) == 1
    futex.wait(threads[1], 64, 2, 0, None)
    blocks(lambda: futex.wait(threads[0], 64, 1, 0, None))


def test_a_moved_waiter_is_woken_where_it_is_now(threads: list[Thread]) -> None:
    for thread in threads:
        blocks(lambda t=thread: futex.wait(t, 64, ANY, 0, None))  # type: ignore[misc]
    assert futex.requeue(threads[0].process, 64, 1, 128, 1) == (1, 1)
    assert futex.wake(threads[0].process, 128, 10, ANY) == 1
    assert futex.wake(threads[0].process, 64, 10, ANY) == 1


def test_a_waiter_that_gives_up_is_not_woken(process: Process, threads: list[Thread]) -> None:
    blocks(lambda: futex.wait(threads[0], 64, ANY, 0, 100))
    assert errno_of(futex.wait, threads[0], 64, ANY, 100, 100) is Errno.ETIMEDOUT
    threads[0].call.clear()
    blocks(lambda: futex.wait(threads[1], 64, ANY, 0, None))
    threads[1].call.clear()
    assert futex.wake(threads[2].process, 64, 10, ANY) == 0
    assert process.futexes == {}


def test_proc_shows_the_threads(system: System, process: Process, threads: list[Thread]) -> None:
    namespace = system.kernel.namespace
    threads[1].name = b"worker"
    threads[1].state = ProcessState.SLEEPING

    def read(path: bytes) -> bytes:
        file = system.open(process, path, 0)
        content = file.read(4096)
        file.release()
        return content

    tid = threads[1].tid
    status = read(b"/proc/%d/task/%d/status" % (process.pid, tid))
    assert b"Name:\tworker\n" in status
    assert b"State:\tS (sleeping)\n" in status
    assert b"Tgid:\t%d\n" % process.pid in status
    assert b"Pid:\t%d\n" % tid in status
    assert b"Threads:\t3\n" in read(b"/proc/%d/status" % process.pid)
    node = namespace.resolve(
        process.identity.credentials(), namespace.root, b"/proc/%d/task" % process.pid
    )
    names = [entry.name for entry in namespace.readdir(node, 0, 100)]
    assert names == [b".", b"..", *(b"%d" % thread.tid for thread in threads)]
