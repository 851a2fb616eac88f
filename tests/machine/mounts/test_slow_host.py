"""A directory of the host that does not answer: only who uses it waits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
from wasmsand import Mount, Sandbox
from wasmsand.machine.mounts.host_changes import WritableDirectory
from wasmsand.machine.mounts.host_directory import HostDirectory

SOON_SECONDS = 5.0


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    place.mkdir()
    (place / "file").write_text("content\n")
    return place


class Gate:
    """Makes methods of a host directory wait until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._open = threading.Event()
        self.waiting = 0

    def guard(self, kind: type[HostDirectory], name: str) -> None:
        method: Callable[..., Any] = getattr(kind, name)

        def guarded(*arguments: Any, **options: Any) -> Any:
            self.waiting += 1
            self._open.wait()
            return method(*arguments, **options)

        self._patch.setattr(kind, name, guarded)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.open()


@pytest.fixture
def sandbox(inside: Path) -> Iterator[Sandbox]:
    with Sandbox(mounts={"/mnt/d": Mount(inside, mode="read-write")}, cwd="/") as made:
        yield made


def mount_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "wasmsand-mount"}


def test_others_go_on_while_a_guest_waits_for_the_host(sandbox: Sandbox, gate: Gate) -> None:
    gate.guard(HostDirectory, "list")
    with sandbox.commands.start("cat /mnt/d/file") as reader:
        wait_until(lambda: gate.waiting)
        began = time.monotonic()
        assert sandbox.commands.run("echo hi; cat /proc/mounts | wc -l").stdout == "hi\n3\n"
        sandbox.files.write("/tmp/x", "y")
        assert sandbox.files.read("/tmp/x") == b"y"
        assert time.monotonic() - began < SOON_SECONDS
        gate.open()
        assert reader.wait().stdout == "content\n"


def test_a_command_that_waits_for_the_host_can_be_killed(sandbox: Sandbox, gate: Gate) -> None:
    gate.guard(HostDirectory, "list")
    with sandbox.commands.start("cat /mnt/d/file") as reader:
        wait_until(lambda: gate.waiting)
        reader.kill()
        began = time.monotonic()
        assert reader.wait().exit_code == 137
        assert time.monotonic() - began < SOON_SECONDS


def test_a_timeout_ends_a_command_that_waits_for_the_host(sandbox: Sandbox, gate: Gate) -> None:
    gate.guard(HostDirectory, "read")
    began = time.monotonic()
    assert sandbox.commands.run("cat /mnt/d/file", timeout_ms=300).timed_out
    assert time.monotonic() - began < SOON_SECONDS


def test_an_operation_of_the_host_waits_without_the_lock(sandbox: Sandbox, gate: Gate) -> None:
    gate.guard(HostDirectory, "list")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(sandbox.files.read("/mnt/d/file")))
    reader.start()
    wait_until(lambda: gate.waiting)
    assert sandbox.commands.run("echo hi").stdout == "hi\n"
    gate.open()
    reader.join()
    assert found == [b"content\n"]


def test_processes_that_wait_for_the_host_take_few_threads(sandbox: Sandbox, gate: Gate) -> None:
    gate.guard(HostDirectory, "list")
    before = mount_threads()
    command = "for i in $(seq 8); do cat /mnt/d/file & done; wait"
    with sandbox.commands.start(command) as readers:
        wait_until(lambda: gate.waiting >= 4)
        time.sleep(0.3)
        assert gate.waiting == 4
        assert len(mount_threads() - before) <= 4
        gate.open()
        assert readers.wait().stdout == "content\n" * 8


def test_a_slow_change_is_made_once_and_seen_as_new(
    sandbox: Sandbox, gate: Gate, inside: Path
) -> None:
    """While the change waits, what is known of the directory becomes old, and another process
    looks at it."""
    gate.guard(WritableDirectory, "create")
    with sandbox.commands.start("set -C; echo mine > /mnt/d/lock && echo got it") as maker:
        wait_until(lambda: gate.waiting)
        (inside / "other").write_text("")
        time.sleep(1.1)
        assert sandbox.commands.run("ls /mnt/d").exit_code == 0
        gate.open()
        assert maker.wait().stdout == "got it\n"
    assert gate.waiting == 1
    assert (inside / "lock").read_text() == "mine\n"
    again = sandbox.commands.run("set -C; echo yours > /mnt/d/lock")
    assert "cannot overwrite existing file" in again.stderr


def test_two_processes_that_create_one_file_at_once_both_open_it(
    sandbox: Sandbox, inside: Path
) -> None:
    script = "for i in $(seq 40); do (echo a >> f$i) & (echo b >> f$i) & wait; done; cat f* | wc -l"
    result = sandbox.commands.run(f"cd /mnt/d; {script}")
    assert (result.stderr, result.exit_code) == ("", 0)
    assert sum(len((inside / f"f{i}").read_text()) for i in range(1, 41)) >= 80


def test_a_killed_sandbox_lets_go_of_the_directory(inside: Path) -> None:
    sandbox = Sandbox(mounts={"/mnt/d": Mount(inside, mode="read-write")})
    sandbox.commands.run("cat /mnt/d/file; echo x > /mnt/d/new")
    assert str(inside) in open_paths()
    sandbox.kill()
    wait_until(lambda: not [path for path in open_paths() if path.startswith(str(inside))])


def open_paths() -> list[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return found
