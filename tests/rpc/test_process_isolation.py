"""A sandbox in a process of its own: what it promises beyond the API (tested in tests/sdk)."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until
from wasmsand import (
    NoSpaceError,
    Sandbox,
    SandboxClosedError,
    SandboxCrashedError,
    SandboxOptions,
    WasmDirError,
)
from wasmsand.rpc.backend import ProcessBackend, open_process_backend
from wasmsand.sdk.backend import CommandRequest

SECONDS = 60


@pytest.fixture
def backend() -> Iterator[ProcessBackend]:
    made = open_process_backend(SandboxOptions())
    yield made
    made.close()


@pytest.fixture
def sandbox(backend: ProcessBackend) -> Sandbox:
    return Sandbox.from_backend(backend)


def outcome_of(act: Callable[[], object]) -> list[object]:
    """Call on a thread; the returned list gets the result or the exception."""
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(act())
        except Exception as error:
            outcome.append(error)

    threading.Thread(target=work, daemon=True).start()
    return outcome


def children_of(pid: int) -> dict[int, str]:
    """The command lines of a process's children that are processes of sandboxes."""
    command = ["ps", "--ppid", str(pid), "-o", "pid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    split = [line.strip().partition(" ") for line in listed if "wasmsand rpc" in line]
    return {int(number): words for number, _, words in split}


def exists(pid: int) -> bool:
    """Whether the process exists, even as a zombie."""
    return Path(f"/proc/{pid}").exists()


def test_the_sandbox_is_in_another_process() -> None:
    with Sandbox(isolation="process") as sandbox:
        assert sandbox.commands.run("echo hello").stdout == "hello\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_process_that_dies_ends_every_call_with_a_crash(
    backend: ProcessBackend, sandbox: Sandbox, number: signal.Signals
) -> None:
    started = sandbox.commands.start("cat")
    waiting = [
        outcome_of(lambda: sandbox.commands.run("sleep 1000", timeout_ms=10**7)),
        outcome_of(lambda: next(iter(started))),
        outcome_of(lambda: started.wait()),
    ]
    time.sleep(0.5)
    os.kill(backend.pid, number)
    wait_until(lambda: all(waiting))
    for (outcome,) in waiting:
        assert isinstance(outcome, SandboxCrashedError)
        assert outcome.exit_status == -number
        assert str(outcome).startswith(
            f"the process of the sandbox ended unexpectedly (signal {int(number)}); "
            "create a new Sandbox"
        )
    with pytest.raises(SandboxCrashedError):
        sandbox.files.read("/etc/passwd")
    assert not exists(backend.pid)
    sandbox.kill()
    with pytest.raises(SandboxClosedError, match="was killed; create a new Sandbox"):
        sandbox.files.read("/etc/passwd")


def test_a_process_that_says_nothing_can_still_be_killed(
    backend: ProcessBackend, sandbox: Sandbox
) -> None:
    os.kill(backend.pid, signal.SIGSTOP)
    outcome = outcome_of(lambda: sandbox.files.read("/etc/passwd"))
    time.sleep(0.2)
    assert not outcome
    began = time.monotonic()
    sandbox.kill()
    assert time.monotonic() - began < SECONDS
    wait_until(lambda: outcome)
    assert isinstance(outcome[0], SandboxClosedError)
    assert not exists(backend.pid)


def test_kill_leaves_no_process_thread_or_descriptor() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    Sandbox(isolation="process").kill()
    before = descriptors(), threading.active_count()
    for _ in range(3):
        backend = open_process_backend(SandboxOptions())
        sandbox = Sandbox.from_backend(backend)
        sandbox.commands.run("true")
        sandbox.commands.start("cat")
        sandbox.kill()
        assert not exists(backend.pid)
    gc.collect()
    wait_until(lambda: (descriptors(), threading.active_count()) <= before)


def test_a_sandbox_that_nobody_holds_is_ended() -> None:
    backend = open_process_backend(SandboxOptions())
    pid = backend.pid
    sandbox = Sandbox.from_backend(backend)
    sandbox.commands.run("true")
    del sandbox, backend
    gc.collect()
    wait_until(lambda: not exists(pid))


def test_a_command_that_nobody_holds_is_released(backend: ProcessBackend, sandbox: Sandbox) -> None:
    for _ in range(20):
        sandbox.commands.start("true", stdin="")
    gc.collect()
    assert sandbox.commands.run("echo on").stdout == "on\n"


def test_a_command_can_be_killed_after_its_sandbox(backend: ProcessBackend) -> None:
    process = backend.start(CommandRequest(argv=("sleep", "60"), environ={}, cwd="/"))
    backend.close()
    process.kill()


def test_many_threads_share_one_sandbox(sandbox: Sandbox) -> None:
    def work(number: int) -> object:
        for turn in range(5):
            text = f"{number}:{turn}"
            sandbox.files.write(f"f{number}", text)
            assert sandbox.commands.run(["cat", f"f{number}"]).stdout == text
            assert sandbox.files.read(f"f{number}") == text.encode()
        return "done"

    outcomes = [outcome_of(lambda number=number: work(number)) for number in range(16)]  # type: ignore[misc]
    wait_until(lambda: all(outcomes))
    assert [outcome[0] for outcome in outcomes] == ["done"] * 16


def test_a_long_command_does_not_hold_up_other_calls(sandbox: Sandbox) -> None:
    outcome = outcome_of(lambda: sandbox.commands.run("sleep 1000", timeout_ms=10**7))
    time.sleep(0.3)
    for _ in range(3):
        assert sandbox.commands.run("echo on").stdout == "on\n"
    assert not outcome
    sandbox.kill()
    wait_until(lambda: outcome)
    assert isinstance(outcome[0], SandboxClosedError)


def test_a_write_that_does_not_fit_is_no_space_and_changes_nothing() -> None:
    with Sandbox(isolation="process", fs_limit_bytes=100_000) as sandbox:
        sandbox.files.write("a", "old")
        for size in (99_999, 100_001, 5_000_000):
            with pytest.raises(NoSpaceError, match="raise fs_limit_bytes"):
                sandbox.files.write("a", bytes(size))
        assert sandbox.files.read("a") == b"old"


def test_a_failed_creation_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "bad.wasm").write_bytes(b"nonsense")
    with pytest.raises(WasmDirError, match=r"bad\.wasm"):
        Sandbox(isolation="process", wasm_dir=tmp_path)
    templates = children_of(os.getpid())
    assert all("--template" in words for words in templates.values())
    for template in templates:
        assert children_of(template) == {}


def test_no_code_is_loaded_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wasmsand", "json", "cffi"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with Sandbox(isolation="process") as sandbox:
        assert sandbox.commands.run("echo on").stdout == "on\n"


def test_the_process_ends_with_its_parent() -> None:
    script = (
        "import os, time, wasmsand.rpc.backend as b, wasmsand\n"
        "backend = b.open_process_backend(wasmsand.SandboxOptions())\n"
        "print(backend.pid, flush=True)\n"
        "wasmsand.Sandbox.from_backend(backend).commands.run('sleep 1000', timeout_ms=10**7)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert exists(pid)
        parent.kill()
    wait_until(lambda: not exists(pid))


def test_the_error_contains_the_last_output_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(
        SandboxCrashedError, match=r"(?s)ended unexpectedly .*Its last output on standard error: .*"
    ):
        Sandbox(isolation="process")
