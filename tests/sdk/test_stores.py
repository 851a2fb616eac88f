"""Named sandboxes, which outlive the process."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from scripts.crash_store import crash
from tests.waiting import wait_until
from wasmsand import (
    DirectoryStore,
    Sandbox,
    SandboxClosedError,
    SandboxOptions,
    StateError,
    StoreBusyError,
    StoredSandbox,
    StoreError,
)
from wasmsand.sdk.client_programs import snapshot_with
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.stores import default_store_directory


def python_of(sandbox: Sandbox, position: int = 0) -> PythonSession:
    session = sandbox.sessions[position]
    assert isinstance(session, PythonSession)
    return session


def shell_of(sandbox: Sandbox, position: int = 0) -> Shell:
    session = sandbox.sessions[position]
    assert isinstance(session, Shell)
    return session


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of the host that runs `program`."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


def test_a_named_sandbox_is_there_again(tmp_path: Path) -> None:
    options = SandboxOptions(env={"A": "1"}, max_processes=100, timeout_ms=9000)
    with Sandbox.open("agent-7", store=tmp_path, options=options) as sandbox:
        assert sandbox.name == "agent-7"
        sandbox.python().run("x = {'a': [1, 2]}")
        sandbox.shell().run("cd /tmp; f() { echo called; }")
        sandbox.files.write("f", "text")
        sandbox.env.set("B", "2")
    with Sandbox.open("agent-7", store=tmp_path) as sandbox:
        assert python_of(sandbox).run("x").value == {"a": [1, 2]}
        assert shell_of(sandbox, 1).run("pwd; f").stdout == "/tmp\ncalled\n"
        assert sandbox.commands.run("cat f; echo $A $B").stdout == "text1 2\n"
        # The store is the host's own, so limits above the default ones are kept.
        assert sandbox.usage().max_processes == 100
        assert sandbox.options.timeout_ms == 9000
    assert [stored.name for stored in DirectoryStore(tmp_path).list()] == ["agent-7"]


def test_names_are_independent_and_can_be_deleted(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "new" / "store")
    assert store.list() == []
    for name in ("b", "a", "A"):
        with Sandbox.open(name, store=store) as sandbox:
            sandbox.files.write("name", name)
    with Sandbox.open("A", store=store) as sandbox:
        assert sandbox.files.read_text("name") == "A"
        with pytest.raises(StoreBusyError):
            store.delete("A")
    assert [stored.name for stored in store.list()] == ["A", "a", "b"]
    assert all(stored.size_bytes > 0 and stored.saved > 1e9 for stored in store.list())
    store.delete("a")
    assert [stored.name for stored in store.list()] == ["A", "b"]
    assert len(list((store.path / "states").iterdir())) == 2
    with pytest.raises(StoreError, match="no sandbox named 'a'"):
        store.delete("a")


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", ".hidden", "-flag", "a b", "x" * 101, "a\0", "é", "a\n", 7]
)
def test_names_are_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises((ValueError, TypeError), match="name"):
        Sandbox.open(name, store=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_of_two_openers_gets_the_sandbox(tmp_path: Path) -> None:
    program = """
        import sys
        from wasmsand import Sandbox
        sandbox = Sandbox.open("one", store=sys.argv[1])
        sandbox.files.write("f", "by the other process")
        print("open", flush=True)
        sys.stdin.readline()
        sandbox.kill()
    """
    with start(program, str(tmp_path)) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreBusyError, match=rf"'one' is open in process {other.pid}"):
            Sandbox.open("one", store=tmp_path)
        with Sandbox.open("two", store=tmp_path) as second:
            with pytest.raises(StoreBusyError, match=f"in process {os.getpid()}"):
                Sandbox.open("two", store=tmp_path)
            second.files.write("f", "still usable")
        other.communicate("go\n")
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert sandbox.files.read_text("f") == "by the other process"


def test_a_name_is_free_after_its_process_was_killed(tmp_path: Path) -> None:
    program = """
        import os, sys, time
        from wasmsand import Sandbox
        sandbox = Sandbox.open("one", store=sys.argv[1])
        sandbox.python().run("x = 41")
        sandbox.commands.run("echo first > f")
        sandbox.flush()
        reading, writing = os.pipe()
        if os.fork() == 0:  # a child of the host does not hold the name
            os.close(1)
            os.write(writing, b"forked")
            time.sleep(100)
        os.read(reading, 6)
        print("saved", os.getpid(), flush=True)
        time.sleep(100)
    """
    with start(program, str(tmp_path)) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == f"saved {other.pid}\n"
        child = int(Path(f"/proc/{other.pid}/task/{other.pid}/children").read_text().split()[0])
        other.send_signal(signal.SIGKILL)
    try:
        with Sandbox.open("one", store=tmp_path) as sandbox:
            assert python_of(sandbox).run("x + 1").value == 42
            assert sandbox.files.read_text("f") == "first\n"
    finally:
        os.kill(child, signal.SIGKILL)


def test_changes_are_written_in_the_background(tmp_path: Path) -> None:
    program = """
        import sys, time
        from wasmsand import Sandbox
        sandbox = Sandbox.open("one", store=sys.argv[1])
        sandbox.shell().run("x=from-the-shell")
        sandbox.commands.start("sleep 0.7; echo late > late; sleep 1000")
        print("done", flush=True)
        time.sleep(1000)
    """

    def has_late_file() -> bool:
        states = list((tmp_path / "states").glob("[!.]*.wsand"))
        try:
            with Sandbox.load(states[0]) as copy:
                return copy.files.exists("late") and len(copy.sessions) == 1
        except (IndexError, StateError):  # not there yet, or replaced just now
            return False

    with start(program, str(tmp_path)) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "done\n"
        wait_until(has_late_file, "the file was never saved", pause=0.3)
        other.send_signal(signal.SIGKILL)
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert sandbox.files.read_text("late") == "late\n"
        assert shell_of(sandbox).run("echo $x").stdout == "from-the-shell\n"
        assert len(sandbox.commands.list()) == 1


def test_changes_are_written_when_the_process_exits_or_forgets_the_sandbox(tmp_path: Path) -> None:
    program = """
        import sys
        from wasmsand import Sandbox
        sandbox = Sandbox.open("one", store=sys.argv[1])
        sandbox.python().run("x = 'from the exit'")
        print("done")
    """
    with start(program, str(tmp_path)) as other:
        assert other.communicate()[0] == "done\n"
    sandbox = Sandbox.open("one", store=tmp_path)
    assert python_of(sandbox).run("x").value == "from the exit"
    python_of(sandbox).run("x = 'forgotten'")
    del sandbox
    gc.collect()
    opened: list[Sandbox] = []

    def open_again() -> bool:
        try:
            opened.append(Sandbox.open("one", store=tmp_path))
        except StoreBusyError:
            return False
        return True

    wait_until(open_again, "the name stays claimed", pause=0.1)
    with opened[0]:
        assert python_of(opened[0]).run("x").value == "forgotten"


def test_nothing_is_written_if_nothing_has_changed(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        sandbox.files.write("f", "x")
        sandbox.flush()
        before = DirectoryStore(tmp_path).list()
        sandbox.flush()
    assert len(before) == 1
    assert len(list((tmp_path / "states").iterdir())) == 1


def test_a_paused_sandbox_resumes_with_its_next_use(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        session, shell = sandbox.python(), sandbox.shell()
        session.run("x = list(range(10))")
        shell.run("cd /tmp; n=5")
        sandbox.env.set("A", "1")
        sandbox.pause()
        assert sandbox.paused
        assert sandbox.sessions == [session, shell]
        with pytest.raises(StoreBusyError):
            Sandbox.open("one", store=tmp_path)
        assert session.run("sum(x)").value == 45
        assert not sandbox.paused
        assert shell.run("pwd; echo $n").stdout == "/tmp\n5\n"
        assert sandbox.commands.run("echo $A").stdout == "1\n"
        sandbox.pause()
        sandbox.resume()
        assert not sandbox.paused
        session.run("x.append(55)")
        sandbox.pause()
    with pytest.raises(SandboxClosedError):
        session.run("x")
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert python_of(sandbox).run("sum(x)").value == 100


def test_many_threads_wake_a_paused_sandbox_once(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        sandbox.files.write("f", "x")
        found: list[bytes] = []

        def read() -> None:
            found.append(sandbox.files.read("f"))

        for _ in range(3):
            sandbox.pause()
            threads = [threading.Thread(target=read) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert found == [b"x"] * 24


def test_what_runs_keeps_a_sandbox_from_being_paused(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        sandbox.commands.start("sleep 100")
        with pytest.raises(StateError, match="a command runs"):
            sandbox.pause()
        assert not sandbox.paused
        sandbox.pause(running="drop")
        assert sandbox.commands.list() == []
    with Sandbox() as plain, pytest.raises(StateError, match=r"open it with Sandbox\.open"):
        plain.pause()


def test_changes_can_be_discarded(tmp_path: Path) -> None:
    sandbox = Sandbox.open("one", store=tmp_path)
    sandbox.files.write("f", "kept")
    sandbox.flush()
    sandbox.files.write("f", "discarded")
    sandbox.kill(discard=True)
    sandbox.kill()
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert sandbox.files.read_text("f") == "kept"


def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    program = """
        import resource, sys
        from wasmsand import Sandbox, StoreError
        sandbox = Sandbox.open("one", store=sys.argv[1])
        sandbox.files.write("f", "first")
        sandbox.flush()
        sandbox.commands.run("head -c 5000000 /dev/urandom > f")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        for act in (sandbox.flush, sandbox.pause, sandbox.kill):
            try:
                act()
            except StoreError as error:
                print(error)
        print(len(sandbox.files.read("f")), flush=True)
        sandbox.kill(discard=True)
    """
    with start(program, str(tmp_path)) as other:
        output = other.communicate()[0]
    message = (
        f"cannot save 'one'; the last saved state is unchanged in {tmp_path}: File too large\n"
    )
    assert output == message * 3 + "5000000\n"
    assert len(list((tmp_path / "states").iterdir())) == 1
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert sandbox.files.read_text("f") == "first"


def test_a_store_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreError, match=r"cannot open 'one' in .*/file: (File exists|Not a dir)"):
        Sandbox.open("one", store=tmp_path / "file")
    with pytest.raises(StoreError, match=r"cannot open 'one' in .*/file/below: Not a directory"):
        Sandbox.open("one", store=tmp_path / "file" / "below")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "index.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(StoreError, match="file is not a database"):
        Sandbox.open("one", store=damaged)
    with pytest.raises(StoreError, match="file is not a database"):
        DirectoryStore(damaged).list()


def test_a_damaged_state_is_refused_and_kept(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        sandbox.files.write("f", "x" * 1000)
    (state,) = (tmp_path / "states").iterdir()
    content = state.read_bytes()
    state.write_bytes(content[:-20])
    with pytest.raises(StateError, match="cut short"):
        Sandbox.open("one", store=tmp_path)
    state.write_bytes(content)
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert sandbox.files.read("f") == b"x" * 1000
    (state,) = (tmp_path / "states").iterdir()
    state.unlink()
    with pytest.raises(StoreError, match=r"cannot read 'one' in .*: No such file"):
        Sandbox.open("one", store=tmp_path)


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        sandbox.files.write("f", "x")
    (state,) = (tmp_path / "states").iterdir()
    key = state.name.partition("-")[0]
    (tmp_path / "states" / f".{key}-1.wsand.abc.part").write_bytes(b"half")
    (tmp_path / "states" / f"{key}-1.wsand").write_bytes(b"not in the index")
    (tmp_path / "states" / "of-another-name").write_bytes(b"")
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert sandbox.files.read_text("f") == "x"
        names = {path.name for path in (tmp_path / "states").iterdir()}
        assert names == {state.name, "of-another-name"}


def test_the_default_store_is_in_the_users_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_store_directory() == tmp_path / "wasmsand" / "sandboxes"
    with Sandbox.open("one") as sandbox:
        sandbox.files.write("f", "x")
    assert [stored.name for stored in DirectoryStore().list()] == ["one"]
    assert (tmp_path / "wasmsand" / "sandboxes").stat().st_mode & 0o77 == 0


class OwnStore:
    """A store of one's own: states in memory, which can fail."""

    def __init__(self) -> None:
        self.states: dict[str, bytes] = {}
        self.fails = False

    def claim(self, name: str) -> OwnClaim:
        return OwnClaim(self, name)

    def list(self) -> list[StoredSandbox]:
        return [StoredSandbox(name, len(state), 0.0) for name, state in self.states.items()]

    def delete(self, name: str) -> None:
        del self.states[name]


class OwnClaim:
    def __init__(self, store: OwnStore, name: str) -> None:
        self._store, self.name = store, name

    def read(self) -> IO[bytes] | None:
        state = self._store.states.get(self.name)
        return None if state is None else io.BytesIO(state)

    def write(self, write: Callable[[IO[bytes]], None]) -> None:
        stream = io.BytesIO()
        write(stream)
        if self._store.fails:
            raise StoreError("the cloud is down")
        self._store.states[self.name] = stream.getvalue()

    def release(self) -> None:
        pass


def test_another_kind_of_store_can_be_used_and_its_failure_ends_nothing() -> None:
    store = OwnStore()
    sandbox = Sandbox.open("one", store=store)
    sandbox.files.write("f", "first")
    sandbox.flush()
    store.fails = True
    sandbox.files.write("f", "second")
    with pytest.raises(StoreError, match="the cloud is down"):
        sandbox.kill()
    assert sandbox.files.read_text("f") == "second"
    store.fails = False
    sandbox.kill()
    with Sandbox.open("one", store=store) as sandbox:
        assert sandbox.files.read_text("f") == "second"


def test_a_session_that_runs_a_request_is_waited_for(tmp_path: Path) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        session = sandbox.python()
        session.run("import time")
        busy = threading.Thread(target=session.run, args=("time.sleep(1); x = 5",))
        busy.start()
        wait_until(lambda: len(sandbox.commands.list()) == 1)
        with pytest.raises(StateError, match="it runs a request"):
            sandbox.flush()
        busy.join()
        sandbox.flush()
    with Sandbox.open("one", store=tmp_path) as sandbox:
        assert python_of(sandbox).run("x").value == 5


@pytest.mark.parametrize("take", [Sandbox.snapshot, snapshot_with], ids=["user", "server"])
def test_copies_can_be_taken_while_the_sandbox_is_written(
    tmp_path: Path, take: Callable[[Sandbox], object]
) -> None:
    with Sandbox.open("one", store=tmp_path) as sandbox:
        sandbox.shell().run("x=5")
        sandbox.python().run("x = 5")
        ended = threading.Event()
        failures: list[StateError] = []

        def write() -> None:
            while not ended.is_set():
                try:
                    sandbox.env.set("A", "1")
                    sandbox.flush()
                except StateError as error:
                    failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(20):
                take(sandbox)
        finally:
            ended.set()
            writer.join()
        assert failures == []


def test_killing_the_host_at_any_moment_never_tears_a_state(tmp_path: Path) -> None:
    assert crash(tmp_path, 40, sandboxes=False, seed=1) > 0


@pytest.mark.slow
def test_killing_the_host_at_any_moment_never_tears_a_sandbox(tmp_path: Path) -> None:
    assert crash(tmp_path, 8, sandboxes=True, seed=2) > 0
