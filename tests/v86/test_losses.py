"""A machine that is lost: a clear error, then it works again."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from tests.v86.built import needs_v86
from wasmsand import CommandError, FileError, Sandbox, SandboxOptions
from wasmsand.sdk.errors import NoSpaceError
from wasmsand.v86.backend import V86Backend, open_v86_backend

pytestmark = needs_v86

LONG_MS = 240_000
OPTIONS = SandboxOptions(
    timeout_ms=LONG_MS, fs_limit_bytes=32 << 20, memory_limit_bytes=64 << 20, max_processes=40
)


@pytest.fixture(scope="module")
def backend() -> Iterator[V86Backend]:
    opened = open_v86_backend(OPTIONS)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def machine(backend: V86Backend) -> Sandbox:
    return Sandbox.from_backend(backend, OPTIONS)


def works(machine: Sandbox) -> bool:
    return machine.commands.run("echo on").stdout == "on\n"


def test_a_panic_of_the_kernel_is_told_and_the_machine_starts_again(machine: Sandbox) -> None:
    machine.files.write("/home/user/kept", "x")
    with pytest.raises(CommandError, match=r"its kernel has panicked: .*sysrq"):
        machine.commands.run("echo c > /proc/sysrq-trigger", user="root")
    assert works(machine)
    assert not machine.files.exists("/home/user/kept")


def test_a_killed_emulator_is_told_and_started_again(machine: Sandbox, backend: V86Backend) -> None:
    assert works(machine)
    os.kill(backend._machine.agent().node.process.pid, signal.SIGKILL)
    with pytest.raises((CommandError, FileError), match="the machine was lost"):
        for _ in range(1000):
            machine.files.read("/etc/passwd")
    assert works(machine)


def test_a_command_in_flight_ends_when_the_emulator_is_killed(
    machine: Sandbox, backend: V86Backend
) -> None:
    handle = machine.commands.start("sleep 970")
    os.kill(backend._machine.agent().node.process.pid, signal.SIGKILL)
    with pytest.raises(CommandError, match="the machine was lost"):
        handle.wait()
    assert works(machine)


def test_a_machine_that_a_thread_has_started_outlives_the_thread(
    machine: Sandbox, backend: V86Backend
) -> None:
    backend._machine.agent().lose("a test")
    thread = threading.Thread(target=works, args=(machine,))
    thread.start()
    thread.join()
    assert backend._machine.agent().node.process.poll() is None
    assert works(machine)


def test_a_machine_ends_with_the_last_reference_to_its_sandbox() -> None:
    sandbox = Sandbox(mode="v86", timeout_ms=LONG_MS)
    backend = sandbox._attachment.backend
    assert isinstance(backend, V86Backend)
    process = backend._machine.agent().node.process
    del sandbox, backend
    gc.collect()
    assert process.wait(60) == -signal.SIGKILL


def test_a_fork_bomb_ends_with_its_time_limit(machine: Sandbox) -> None:
    result = machine.commands.run("bomb() { bomb | bomb & }; bomb; wait; sleep 60", timeout_ms=5000)
    assert result.timed_out or result.exit_code
    assert works(machine)
    assert machine.usage().processes == 0


def test_a_full_disk_is_told_and_can_be_freed(machine: Sandbox) -> None:
    result = machine.commands.run("head -c 60M /dev/zero > big")
    assert "No space left on device" in result.stderr
    with pytest.raises(NoSpaceError):
        machine.files.write("/home/user/more", bytes(4 << 20))
    machine.files.rm("/home/user/big")
    machine.files.write("/home/user/more", bytes(1 << 20))
    assert works(machine)


def test_memory_beyond_the_limit_ends_the_process(machine: Sandbox) -> None:
    result = machine.commands.run(
        "head -c 100M /dev/zero | tail -c 90M > /dev/null; exit ${PIPESTATUS[1]}"
    )
    assert result.exit_code == 137
    assert "wasmsand: out of memory (67108864 bytes)" in result.stderr
    assert works(machine)
