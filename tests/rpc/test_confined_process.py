"""`Sandbox(isolation="process")`: its process is confined, and everything still works."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rpc.test_process_isolation import exists, outcome_of
from tests.waiting import wait_until
from wasmsand import Sandbox, SandboxCrashedError, SandboxOptions
from wasmsand.confinement import landlock, system_calls
from wasmsand.engine import default_engine
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.rpc import client
from wasmsand.rpc.backend import ProcessBackend, open_process_backend

pytestmark = pytest.mark.skipif(not system_calls.numbers_are_known(), reason="Linux only")


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessBackend]:
    monkeypatch.setenv("SOME_SECRET", "do not tell")
    made = open_process_backend(SandboxOptions())
    yield made
    made.close()


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def open_files(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


def test_every_barrier_that_the_system_has_is_in_force(backend: ProcessBackend) -> None:
    status = status_of(backend.pid)
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    names = ("resource limits", "ends with its parent", "no new privileges", "seccomp")
    assert set(names) <= set(backend.barriers)
    assert ("landlock: files" in backend.barriers) == (landlock.version() > 0)
    limits = Path(f"/proc/{backend.pid}/limits").read_text()
    rows = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()[1:]}
    assert rows["Max core file size"] == ["0", "0"]
    assert rows["Max open files"] == ["1024", "1024"]
    assert "unlimited" not in rows["Max data size"]


def test_the_process_gets_no_descriptor_terminal_or_secret_of_its_parent(
    backend: ProcessBackend,
) -> None:
    assert os.getsid(backend.pid) == backend.pid
    environ = Path(f"/proc/{backend.pid}/environ").read_bytes()
    assert b"SOME_SECRET" not in environ
    targets = open_files(backend.pid)
    # One socket: the Unix socket over which its parent passes connections to servers.
    assert len([t for t in targets if t.startswith("socket:")]) == 1
    others = [t for t in targets if not t.startswith(("pipe:", "anon_inode:", "socket:"))]
    assert all(t == "/dev/null" or "pagemap" in t or "(deleted)" in t for t in others), targets
    assert os.readlink(f"/proc/{backend.pid}/cwd") == "/"


def test_a_confined_process_does_what_an_unconfined_one_does(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("a")
    with Sandbox(isolation="process") as sandbox:
        run = sandbox.commands.run
        assert run("echo $(seq 3 | sort -r | head -1)").stdout == "3\n"
        code = (
            "import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()"
        )
        assert run(["python3", "-c", code]).stdout == "1\n"
        with sandbox.shell() as shell, sandbox.python() as python:
            assert shell.run("cd /tmp; pwd").stdout == "/tmp\n"
            assert python.run("6 * 7").value == 42
        sandbox.files.upload(tmp_path / "data", "data")
        sandbox.files.download("data", tmp_path / "again")
        assert (tmp_path / "again" / "a").read_text() == "a"
        result = run("head -c 2000000000 /dev/zero | tail | wc -c; :(){ :|:& };:")
        assert run("echo still").stdout == "still\n", result


def test_programs_are_prepared_again_in_files_without_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WASMSAND_RENEWAL", raising=False)
    backend = open_process_backend(SandboxOptions())
    with Sandbox.from_backend(backend) as sandbox:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert sandbox.commands.run(["python3", "-c", "print(1)"]).stdout == "1\n"
            if any("/unnamed/" in target for target in open_files(backend.pid)):
                return
            time.sleep(0.2)
    pytest.fail("no memory image was made, or it is not on disk")


def test_tools_of_a_directory_that_is_given_are_commands(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    text = """(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1) (func (export "_start") (call $exit (i32.const 7))))"""
    (programs / "seven.wasm").write_bytes(wat_to_wasm(text))
    with Sandbox(isolation="process", wasm_dir=programs) as sandbox:
        assert sandbox.commands.run("seven").exit_code == 7
    # An unconfined process compiled it, for this process and later ones.
    key = hashlib.sha256((programs / "seven.wasm").read_bytes()).hexdigest()
    assert default_engine().is_compiled(key)


def test_a_program_that_a_guest_made_is_compiled_and_kept_to_this_process(
    backend: ProcessBackend,
) -> None:
    sandbox = Sandbox.from_backend(backend)
    status = os.getpid() % 100 + 1  # so that the content is not in the cache
    text = f"""(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1) (func (export "_start") (call $exit (i32.const {status})))
      (data (i32.const 0) "{time.time_ns()}"))"""
    module = wat_to_wasm(text)
    sandbox.files.write("/tmp/made", module)
    sandbox.files.chmod("/tmp/made", 0o755)
    for _ in range(2):
        result = sandbox.commands.run("/tmp/made")
        assert (result.exit_code, result.stderr) == (status, "")
    assert not default_engine().is_compiled(hashlib.sha256(module).hexdigest())


@pytest.mark.parametrize("stopped", [False, True])
def test_a_process_that_neither_reads_nor_answers_is_ended_in_time(
    backend: ProcessBackend, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """Like a process that a guest has taken over, or that hangs."""
    monkeypatch.setattr(client, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("wasmsand.rpc.backend._MARGIN_SECONDS", 1.0)
    sandbox = Sandbox.from_backend(backend)
    os.kill(backend.pid, signal.SIGSTOP)
    outcomes = [outcome_of(lambda: sandbox.commands.run("echo 1", timeout_ms=500))]
    if stopped:  # nothing is read: a pipe is full, and the next writers wait
        big = "x" * 100_000
        outcomes += [
            outcome_of(lambda: sandbox.commands.run(f": {big}", timeout_ms=500)) for _ in range(3)
        ]
    wait_until(lambda: all(outcomes))
    for (outcome,) in outcomes:
        assert isinstance(outcome, SandboxCrashedError)
        assert "did not respond for" in str(outcome)
    assert not exists(backend.pid)


def test_a_process_that_floods_its_standard_error_holds_up_nobody(
    backend: ProcessBackend,
) -> None:
    assert isinstance(backend._process.connection._stderr_tail, bytearray)
    before = threading.active_count()
    for _ in range(3):
        other = open_process_backend(SandboxOptions())
        other.close()
    wait_until(lambda: threading.active_count() <= before)


def test_the_process_is_killed_with_a_parent_whose_forks_live_on() -> None:
    """Otherwise the forks' copies of the pipes would keep it alive."""
    script = (
        "import os, time, wasmsand.rpc.backend as b, wasmsand\n"
        "backend = b.open_process_backend(wasmsand.SandboxOptions())\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(1000)\n"
        "print(backend.pid, child, flush=True)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid, child = map(int, parent.stdout.readline().split())
        parent.kill()
    try:
        wait_until(lambda: not exists(pid) or status_of(pid)["State"].startswith("Z"))
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_thread_that_made_a_sandbox_may_end_before_it() -> None:
    """To Linux, the end of the thread that started a process is the end of its parent."""
    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(Sandbox(isolation="process")))
    thread.start()
    thread.join()
    time.sleep(0.3)
    with made[0] as sandbox:
        assert sandbox.commands.run("echo on").stdout == "on\n"
