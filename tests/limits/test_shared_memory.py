"""Memory that processes share: charged once they write it, and never more in use than the limit."""

from __future__ import annotations

import re
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import wait_until
from wasmsand import CommandError, Sandbox
from wasmsand.engine.wasmtime import memory_image
from wasmsand.engine.wasmtime.touched_pages import writes_can_be_told
from wasmsand.machine import image_programs, renewal

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not writes_can_be_told(),
    reason="this system does not tell which pages were written",
)

MIB = 1 << 20
LIMIT = 256 * MIB
OVERSHOOT = 48 * MIB
"""What computing guests write between two ticks, and the host's own memory for processes."""
SLEEP = "import time; time.sleep(1000)"
DIRTY = """
import ctypes, time
for address in range({first}, {end}, 4096):
    byte = ctypes.c_char.from_address(address)
    byte.value = byte.value
open("done", "w").close()
time.sleep(1000)
"""
"""Writes every page of the interpreter's image, without changing it."""


def stored() -> tuple[int, int]:
    """The first and the last address of the interpreter's image."""
    program = next(program for program in image_programs() if program.name == "python")
    assert program.prepared is not None
    memory = program.prepared.memory
    return memory.first, memory.first + memory.size


def dirty() -> str:
    first, end = stored()
    return DIRTY.format(first=first, end=end)


def private_bytes() -> int:
    """Memory of this host process that it shares with no file."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox(memory_limit_bytes=LIMIT, timeout_ms=None)


def living(sandbox: Sandbox, count: int) -> None:
    def are_there() -> bool:
        return sandbox.usage().processes == count

    wait_until(are_there, f"not {count} processes")


def test_processes_are_not_charged_for_what_they_share(sandbox: Sandbox) -> None:
    first, end = stored()
    with sandbox:
        for _ in range(60):
            sandbox.commands.start(["python3", "-c", SLEEP])
        living(sandbox, 60)
        used = sandbox.usage().memory_bytes
        assert used < LIMIT < 60 * (end - first)
        shown = sandbox.commands.run("ps -o rss= -C python3").stdout.split()
        assert len(shown) == 60
        assert sum(map(int, shown)) * 1024 < LIMIT


def test_what_a_process_writes_is_charged_to_it(sandbox: Sandbox) -> None:
    first, end = stored()
    with sandbox:
        before = sandbox.usage().memory_bytes
        process = sandbox.commands.start(["python3", "-c", dirty()])
        wait_until(lambda: sandbox.files.exists("done"), "the guest wrote nothing")
        wait_until(  # its thread counts its page faults when it waits, or at its next tick
            lambda: sandbox.usage().memory_bytes - before >= end - first,
            "what the guest wrote is not charged",
        )
        process.kill()
        living(sandbox, 0)
        wait_until(
            lambda: sandbox.usage().memory_bytes <= before, "the charge outlives the process"
        )


def test_a_program_that_reads_and_allocates_is_charged_for_what_it_uses(sandbox: Sandbox) -> None:
    """Page faults of other kinds must not look like writes for long."""
    first, end = stored()
    code = "data = bytearray(100_000_000); open('done', 'w').close(); " + SLEEP
    with sandbox:
        before = sandbox.usage().memory_bytes
        sandbox.commands.start(["python3", "-c", code])
        wait_until(lambda: sandbox.files.exists("done"), "the guest allocated nothing")
        charged = sandbox.usage().memory_bytes - before
        assert 100_000_000 < charged < 100_000_000 + (end - first) // 2 + 8 * MIB


def test_many_processes_that_write_everything_stay_within_the_limit(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(renewal.VARIABLE, "off")  # preparing takes memory of the host's own
    first, end = stored()
    count = 3 * LIMIT // (end - first)
    with sandbox:
        sandbox.commands.run("python3 -c ''")
        before = private_bytes()
        started = []

        def start_all() -> None:
            for _ in range(count):
                with suppress(CommandError):  # no room
                    started.append(sandbox.commands.start(["python3", "-c", dirty()]))

        starter = threading.Thread(target=start_all)
        starter.start()
        most = charged = 0
        deadline = time.monotonic() + 20
        quiet = 0
        while quiet < 50 and time.monotonic() < deadline:
            now = private_bytes() - before
            quiet = 0 if starter.is_alive() or now > most else quiet + 1
            most = max(most, now)
            charged = sandbox.usage().memory_bytes
            time.sleep(0.01)
        starter.join()
        left = sandbox.usage().processes
        assert most < LIMIT + OVERSHOOT
        assert charged <= LIMIT
        assert 0 < left < count
        assert left * (end - first) < LIMIT
        for process in started:
            process.kill()
        living(sandbox, 0)
        assert sandbox.commands.run("echo works").stdout == "works\n"


def test_threads_of_one_process_are_counted_together(sandbox: Sandbox) -> None:
    first, end = stored()
    middle = first + (end - first) // 2 // 4096 * 4096
    code = f"""
import ctypes, threading, time
def write(first, end):
    for address in range(first, end, 4096):
        byte = ctypes.c_char.from_address(address)
        byte.value = byte.value
halves = [({first}, {middle}), ({middle}, {end})]
threads = [threading.Thread(target=write, args=half) for half in halves]
for thread in threads: thread.start()
for thread in threads: thread.join()
open("done", "w").close()
time.sleep(1000)
"""
    with sandbox:
        before = sandbox.usage().memory_bytes
        sandbox.commands.start(["python3", "-c", code])
        wait_until(lambda: sandbox.files.exists("done"), "the guest wrote nothing")
        assert sandbox.usage().memory_bytes - before >= end - first


def test_where_writes_cannot_be_told_everything_is_charged(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, end = stored()
    monkeypatch.setattr(memory_image, "writes_can_be_told", lambda: False)
    monkeypatch.setattr(renewal, "_memories", {})
    with Sandbox(memory_limit_bytes=LIMIT) as other:
        before = other.usage().memory_bytes
        other.commands.start(["python3", "-c", SLEEP])
        living(other, 1)
        assert other.usage().memory_bytes - before >= end - first


@pytest.mark.skipif(
    not any(program.name == "python-full" for program in image_programs()),
    reason="the stage of packages is not built: run `make packages`",
)
def test_sixty_interpreters_with_numpy_fit_where_copies_would_not() -> None:
    limit = 512 * MIB
    program = next(program for program in image_programs() if program.name == "python-full")
    assert program.prepared is not None
    code = "import numpy; open('done', 'a').write('x'); " + SLEEP
    with Sandbox(memory_limit_bytes=limit, timeout_ms=None) as sandbox:
        sandbox.commands.run("ln -s /usr/lib/python/numpy/* /usr/lib/python3.14/site-packages/")
        for _ in range(60):
            sandbox.commands.start(["/usr/libexec/python3-full", "-c", code])
        wait_until(lambda: sandbox.files.exists("done") and len(sandbox.files.read("done")) == 60)
        assert sandbox.usage().processes == 60
        assert sandbox.usage().memory_bytes < limit < 60 * program.prepared.memory.size
