"""Spare processes, which wait for the next sandbox."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.waiting import wait_until
from wasmsand import Sandbox
from wasmsand.rpc.spares import _spares
from wasmsand.sdk.opening import keep_spare_processes


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    keep_spare_processes(0)


def ready(count: int) -> list[int]:
    """Wait until that many spare processes are ready; returns their process IDs."""
    wait_until(lambda: len(_spares._ready) >= count, seconds=120)
    return [connection.pid for _, connection in _spares._ready]


def pid_of(sandbox: Sandbox) -> int:
    return int(sandbox._attachment.backend.pid)  # type: ignore[attr-defined]


def test_a_sandbox_takes_a_process_that_waits_and_another_takes_its_place() -> None:
    keep_spare_processes(1)
    (waiting,) = ready(1)
    with Sandbox(isolation="process") as one, Sandbox(isolation="process") as two:
        assert pid_of(one) == waiting
        assert pid_of(two) != waiting
        assert one.commands.run("echo hi").stdout == two.commands.run("echo hi").stdout == "hi\n"
        assert ready(1) != [waiting]


def test_a_spare_has_the_limits_of_its_sandbox() -> None:
    keep_spare_processes(1)
    (waiting,) = ready(1)
    with Sandbox(isolation="process", fs_limit_bytes=2_000_000, max_processes=7) as sandbox:
        assert pid_of(sandbox) == waiting
        usage = sandbox.usage()
        assert (usage.fs_limit_bytes, usage.max_processes) == (2_000_000, 7)


def test_a_spare_that_is_too_small_is_not_used() -> None:
    keep_spare_processes(1)
    (waiting,) = ready(1)
    with Sandbox(isolation="process", fs_limit_bytes=2**40) as sandbox:
        assert pid_of(sandbox) != waiting


def test_a_spare_that_died_is_not_used() -> None:
    keep_spare_processes(1)
    (waiting,) = ready(1)
    connection = _spares._ready[0][1]
    os.kill(waiting, signal.SIGKILL)
    while connection.is_open:
        time.sleep(0.01)
    with Sandbox(isolation="process") as sandbox:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"


def test_a_spare_that_hangs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wasmsand.rpc.backend._SPARE_SECONDS", 0.5)
    keep_spare_processes(1)
    (waiting,) = ready(1)
    os.kill(waiting, signal.SIGSTOP)
    with Sandbox(isolation="process") as sandbox:
        assert pid_of(sandbox) != waiting
        assert sandbox.commands.run("echo hi").stdout == "hi\n"


def test_spares_end_when_no_longer_wanted() -> None:
    keep_spare_processes(2)
    connections = [connection for _, connection in _spares._ready] if ready(2) else []
    keep_spare_processes(0)
    wait_until(lambda: all(c._end is not None for c in connections), seconds=60)
    assert _spares._ready == []
