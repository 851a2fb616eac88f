"""Sessions with much in memory, copied again and again: what copies share, and what they cost."""

from __future__ import annotations

import gc
import io
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.host_process import mappings, open_descriptors, resident_bytes
from wasmsand import Sandbox
from wasmsand.engine.wasmtime.layered_image import FILE_NAME
from wasmsand.sdk.python_session import PythonSession

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs files without a name")

MB = 1_000_000
FILL = "data = bytearray({size})\nfor i in range(0, len(data), 4096): data[i] = 7"
TOUCH = "for i in range(0, len(data), 4096): data[i] = {value}"
CHECK = "sorted(set(data[::4096]))"


def python_of(sandbox: Sandbox) -> PythonSession:
    session = sandbox.sessions[0]
    assert isinstance(session, PythonSession)
    return session


def fill(sandbox: Sandbox, size: int) -> None:
    assert sandbox.python().run(FILL.format(size=size)).error is None


def test_twins_of_an_unchanged_session_share_its_memory() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 60 * MB)
        sandbox.fork().kill()
        twins = [sandbox.fork()]
        before = resident_bytes()
        twins += [sandbox.fork() for _ in range(10)]
        assert resident_bytes() - before < 150 * MB  # copies would take 600 MB
        for number, twin in enumerate(twins):
            python_of(twin).run(f"data[4096] = {number}")
        for number, twin in enumerate(twins):
            seen = python_of(twin).run("[data[4096], data[8192], sum(data[::4096])]").value
            assert seen == [number, 7, 7 * (60 * MB // 4096) + number]
        assert python_of(sandbox).run(CHECK).value == [7]
        for twin in twins:
            twin.kill()


def test_a_session_goes_on_while_its_twins_keep_what_was() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 20 * MB)
        for value in range(3):
            twins = [sandbox.fork() for _ in range(3)]
            python_of(sandbox).run(TOUCH.format(value=value))
            seen = [python_of(twin).run(CHECK).value for twin in twins]
            assert seen == [[7 if value == 0 else value - 1]] * 3
            assert python_of(sandbox).run(CHECK).value == [value]
            for twin in twins:
                twin.kill()


def test_every_twin_is_charged_for_all_that_it_sees() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 50 * MB)
        alone = sandbox.usage().memory_bytes
        twins = [sandbox.fork() for _ in range(4)]
        for each in (sandbox, *twins):
            assert abs(each.usage().memory_bytes - alone) < 5 * MB
        python_of(twins[3]).run(TOUCH.format(value=1))
        assert abs(twins[3].usage().memory_bytes - alone) < 5 * MB
        for twin in twins:
            twin.kill()


def bytes_in_shared_files() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{name}"
        try:
            if FILE_NAME in os.readlink(link):
                found += os.stat(link).st_blocks * 512
        except FileNotFoundError:  # the descriptor of this listing
            continue
    return found


def test_a_session_that_overwrites_what_its_twins_had_does_not_keep_it() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 50 * MB)
        before = bytes_in_shared_files()
        for _ in range(3):
            sandbox.fork().kill()
        assert bytes_in_shared_files() - before > 45 * MB
        python_of(sandbox).run(TOUCH.format(value=3))
        python_of(sandbox).run("pass")
        assert bytes_in_shared_files() - before < 10 * MB
        assert python_of(sandbox).run(CHECK).value == [3]
        with sandbox.fork() as twin:
            assert python_of(twin).run(CHECK).value == [3]


def test_a_twin_cannot_exceed_its_limit_by_writing_what_it_shares() -> None:
    with Sandbox(memory_limit_bytes=150 * MB) as sandbox:
        fill(sandbox, 80 * MB)
        twins = sandbox.fork(4)
        for twin in twins:
            python_of(twin).run(TOUCH.format(value=2))
            failed = python_of(twin).run("more = bytearray(80_000_000)")
            assert failed.error is not None
            assert failed.error.type == "MemoryError"
            assert python_of(twin).run(CHECK).value == [2]
            assert twin.usage().memory_bytes <= 150 * MB
        assert python_of(sandbox).run(CHECK).value == [7]
        for twin in twins:
            twin.kill()


def test_a_snapshot_is_opened_by_many_threads_at_once() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 20 * MB)
        snapshot = sandbox.snapshot()
    with ThreadPoolExecutor(8) as pool:
        twins = list(pool.map(lambda _: Sandbox.from_snapshot(snapshot), range(16)))
        values = list(pool.map(lambda twin: python_of(twin).run(CHECK).value, twins))
    assert values == [[7]] * 16
    for twin in twins:
        twin.kill()


def test_a_snapshot_is_saved_while_others_open_it() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 20 * MB)
        snapshot = sandbox.snapshot()

    class Slow(bytearray):
        """A stream during whose writing the snapshot is opened."""

        def write(self, data: bytes) -> int:
            if random.random() < 0.1:
                Sandbox.from_snapshot(snapshot).kill()
            self.extend(data)
            return len(data)

    target = Slow()
    snapshot.save(target)  # type: ignore[arg-type]
    with Sandbox.load(io.BytesIO(target)) as loaded:
        assert python_of(loaded).run(CHECK).value == [7]


def test_a_thousand_forks_leave_no_memory_no_mappings_and_no_files() -> None:
    with Sandbox() as sandbox:
        fill(sandbox, 10 * MB)
        for _ in range(20):
            sandbox.fork().kill()
        gc.collect()
        before = resident_bytes(), mappings(), open_descriptors()
        for number in range(1000):
            if number % 100 == 0:
                python_of(sandbox).run(TOUCH.format(value=number % 256))
            with sandbox.fork() as twin:
                if number % 10 == 0:
                    python_of(twin).run("data[0] = 1")
        gc.collect()
        assert resident_bytes() - before[0] < 60 * MB
        assert mappings() - before[1] < 100
        assert open_descriptors() - before[2] <= 2
