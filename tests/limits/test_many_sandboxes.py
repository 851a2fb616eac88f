"""Many sandboxes: at once from several threads, and one after the other without growth."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.host_process import open_descriptors, private_bytes
from wasmsand import Sandbox


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


def create_and_drop(count: int) -> None:
    for _ in range(count):
        Sandbox().commands.run("echo hi")


@pytest.mark.parametrize(
    ("use_up", "few", "many"), [(create_and_kill, 100, 1000), (create_and_drop, 20, 200)]
)
def test_sandboxes_that_were_killed_or_dropped_leave_nothing_behind(
    use_up: Callable[[int], None], few: int, many: int
) -> None:
    use_up(few)  # so that modules and the thread pool, which stay, exist already
    gc.collect()
    memory, threads, descriptors = private_bytes(), threading.active_count(), open_descriptors()
    use_up(many)
    gc.collect()
    # The pool has as many threads as were once busy at the same time; one left behind by each
    # sandbox would be many more.
    assert threading.active_count() < threads + 10
    assert open_descriptors() <= descriptors
    assert private_bytes() - memory < 8_000_000
