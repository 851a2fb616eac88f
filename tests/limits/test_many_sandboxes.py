"""Many sandboxes: at once from several threads, and one after the other without growth."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wasmsand import Sandbox


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def private_memory() -> int:
    """Bytes that belong to this process alone."""
    rollup = Path("/proc/self/smaps_rollup").read_text()
    lines = (line.split() for line in rollup.splitlines()[1:])
    return sum(int(words[1]) for words in lines if words[0].startswith("Private_")) * 1024


def use(number: int) -> str:
    with Sandbox() as sandbox:
        sandbox.files.write("number", f"{number}\n")
        result = sandbox.commands.run("cat number | tr 0-9 a-j; (exit 7)")
        assert result.exit_code == 7
        return result.stdout


def expected(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number)) + "\n"


def test_two_hundred_sandboxes_are_used_from_eight_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(200))) == [expected(number) for number in range(200)]


def test_two_hundred_sandboxes_live_at_once() -> None:
    sandboxes = [Sandbox() for _ in range(200)]
    try:
        for number, sandbox in enumerate(sandboxes):
            sandbox.files.write("number", str(number))

        def read(number: int) -> str:
            return sandboxes[number].commands.run("cat number").stdout

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(read, range(200))) == [str(number) for number in range(200)]
    finally:
        for sandbox in sandboxes:
            sandbox.kill()


def create_and_kill(count: int) -> None:
    for number in range(count):
        sandbox = Sandbox()
        sandbox.files.write("data", b"x" * 100_000)
        if number % 10 == 0:
            sandbox.commands.run("cat data | wc -c; sleep 60 & true")
        sandbox.kill()


def test_a_thousand_sandboxes_leave_nothing_behind() -> None:
    create_and_kill(100)  # what is made once and kept: modules, thread pool
    gc.collect()
    memory, threads, descriptors = private_memory(), threading.active_count(), open_descriptors()
    create_and_kill(1000)
    gc.collect()
    assert threading.active_count() <= threads
    assert open_descriptors() <= descriptors
    assert private_memory() - memory < 8_000_000


def test_a_sandbox_that_is_dropped_without_kill_leaves_nothing_behind() -> None:
    def create_and_drop(count: int) -> None:
        for _ in range(count):
            Sandbox().commands.run("echo hi")

    create_and_drop(20)
    gc.collect()
    memory, threads, descriptors = private_memory(), threading.active_count(), open_descriptors()
    create_and_drop(200)
    gc.collect()
    assert threading.active_count() <= threads
    assert open_descriptors() <= descriptors
    assert private_memory() - memory < 8_000_000
