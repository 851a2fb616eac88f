"""Snapshots, restore and fork through every interface. `test_copies` has the details."""

from __future__ import annotations

import gc
import io
from pathlib import Path
from typing import Any

import pytest

from tests.sdk import blocking_facade
from tests.sdk.backends import MakeSandbox
from tests.waiting import wait_until
from wasmsand import Sandbox, SandboxClosedError, SandboxOptions, StateError
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.local import LocalBackend


def opened(sandbox: Any, snapshot: Any) -> Any:
    """A sandbox from a snapshot, through the interface of `sandbox`."""
    if isinstance(sandbox, blocking_facade.Facade):
        return blocking_facade.from_snapshot(snapshot)
    return Sandbox.from_snapshot(snapshot)


def value(sandbox: Any, position: int, code: str) -> Any:
    """The value of an expression in a Python session of `sandbox`."""
    result = sandbox.sessions[position].run(code)
    assert result.error is None, result.error
    return result.value


def test_twins_have_live_sessions_and_none_sees_the_others(sandbox: Any) -> None:
    sandbox.python().run("rows = [{'id': n, 'value': n * 2} for n in range(1000)]")
    sandbox.shell().run("cd /tmp; name=kept; greet() { echo hello $1 from $name; }; echo 1 > file")
    twins = sandbox.fork(3)
    assert [session.kind for session in twins[0].sessions] == ["python", "shell"]
    for number, twin in enumerate(twins):
        change = f"for row in rows: row['value'] += {number}"
        assert value(twin, 0, f"{change}\nsum(row['value'] for row in rows)") == 999000 + (
            number * 1000
        )
        said = twin.sessions[1].run(f"echo {number} >> file; greet {number}; pwd; cat file")
        assert said.stdout == f"hello {number} from kept\n/tmp\n1\n{number}\n"
    assert value(sandbox, 0, "sum(row['value'] for row in rows)") == 999000
    assert sandbox.sessions[1].run("greet me; cat file").stdout == "hello me from kept\n1\n"
    for twin in twins:
        twin.kill()
    assert value(sandbox, 0, "len(rows)") == 1000


def test_a_twin_is_a_whole_sandbox_that_outlives_the_original(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(env={"MODE": "kept"}, timeout_ms=20_000)
    sandbox.env.set("MORE", "also")
    sandbox.python().run("n = 41")
    twin = sandbox.fork()
    sandbox.kill()
    with pytest.raises(SandboxClosedError):
        sandbox.commands.run("true")
    assert value(twin, 0, "n + 1") == 42
    assert twin.commands.run("echo $MODE $MORE; pwd").stdout == "kept also\n/home/user\n"
    twin.files.write("a.txt", "text")
    assert twin.files.read("a.txt") == b"text"
    with twin.commands.start("cat") as cat:
        cat.write_stdin("through\n")
        cat.close_stdin()
        assert cat.wait().stdout == "through\n"
    assert twin.python().run("'new'").value == "new"
    grandchild = twin.fork()
    twin.kill()
    assert value(grandchild, 0, "n") == 41
    assert value(grandchild, 1, "'new'") == "new"
    grandchild.kill()


def test_restore_goes_back_and_session_objects_go_on(sandbox: Any) -> None:
    sandbox.env.set("MODE", "before")
    session, shell = sandbox.python(), sandbox.shell()
    session.run("n = 1")
    shell.run("n=1; echo one > /tmp/file")
    sandbox.snapshot("start")
    for _ in range(2):
        session.run("n = 2; import json")
        shell.run("n=2; rm /tmp/file")
        later = sandbox.python()
        sandbox.env.set("MODE", "after")
        sandbox.restore("start")
        assert session.run("n").value == 1
        assert shell.run("echo $n; cat /tmp/file").stdout == "1\none\n"
        assert sandbox.env.get("MODE") == "before"
        assert sandbox.commands.run("echo $MODE").stdout == "before\n"
        assert later.closed
        assert sandbox.sessions == [session, shell]


def test_snapshots_form_a_tree_and_can_be_opened_and_deleted(sandbox: Any) -> None:
    sandbox.python().run("trail = []")
    made: dict[str, Any] = {}
    for name in ("a", "b", "x"):
        if name == "x":
            sandbox.restore("a")
        sandbox.sessions[0].run(f"trail.append({name!r})")
        sandbox.files.write(f"/tmp/{name}", name)
        made[name] = sandbox.snapshot(name)
    assert [snapshot.name for snapshot in sandbox.snapshots] == ["a", "b", "x"]
    assert [snapshot.sessions for snapshot in sandbox.snapshots] == [["python"]] * 3
    assert all(snapshot.size_bytes > 1_000_000 for snapshot in sandbox.snapshots)
    for name, trail in {"a": ["a"], "b": ["a", "b"], "x": ["a", "x"]}.items():
        with opened(sandbox, made[name]) as copy:
            assert value(copy, 0, "trail") == trail
            assert sorted(entry.name for entry in copy.files.list("/tmp")) == trail
    sandbox.snapshots.delete("b")
    with pytest.raises(StateError, match="no snapshot has the name 'b'"):
        sandbox.restore("b")
    sandbox.restore(made["b"])  # whoever has the object can use it
    assert value(sandbox, 0, "trail") == ["a", "b"]


def test_what_runs_is_named_or_dropped(sandbox: Any) -> None:
    session, shell = sandbox.python(), sandbox.shell()
    session.run("import socket; s = socket.socket()")
    shell.run("sleep 100 & x=1; until grep -q sleep /proc/$!/comm; do :; done")
    with pytest.raises(StateError, match=r"session 0 \(python\) cannot be copied: .*StreamSocket"):
        sandbox.fork()
    session.run("s.close()")
    with pytest.raises(StateError, match=r"session 1 \(shell\) cannot be copied: .*sleep \(pid"):
        sandbox.snapshot()
    shell.run("kill %1; wait")
    with sandbox.commands.start("sleep 100") as command:
        with pytest.raises(StateError, match=r"a command runs \(pid \d+: sleep 100\)"):
            sandbox.fork()
        with sandbox.fork(running="drop") as twin:
            assert len(twin.sessions) == 2
            assert twin.commands.list() == [] or all(
                "sleep" not in " ".join(process.argv) for process in twin.commands.list()
            )
        command.kill()
    assert session.run("1 + 1").value == 2
    assert shell.run("echo $x").stdout == "1\n"


def test_a_copy_reacts_to_timeouts_and_ends_by_itself(sandbox: Any) -> None:
    sandbox.python().run("n = 1")
    sandbox.shell().run("n=1")
    with sandbox.fork() as twin:
        copy, other = twin.sessions
        assert copy.run("while True: pass", timeout_ms=500).timed_out
        assert copy.run("n").value == 1
        assert other.run("sleep 100", timeout_ms=500).timed_out
        assert other.run("echo $n").stdout == "1\n"
        assert copy.run("import os; os._exit(3)").error is not None
        assert copy.closed
        assert other.run("exit 4").exit_code == 4
        assert twin.sessions == []
    assert value(sandbox, 0, "n") == 1


def test_a_saved_sandbox_goes_on_in_this_process(make_sandbox: MakeSandbox, tmp_path: Path) -> None:
    sandbox = make_sandbox(timeout_ms=23_000)
    sandbox.env.set("MODE", "kept")
    sandbox.python().run("x = 41")
    sandbox.shell().run("cd /tmp; y=5; echo hi > file")
    sandbox.save(tmp_path / "m.wsand")
    stream = io.BytesIO()
    sandbox.snapshot("named").save(stream)
    sandbox.kill()
    stream.seek(0)
    for source in (tmp_path / "m.wsand", stream):
        with Sandbox.load(source) as loaded:
            assert [session.kind for session in loaded.sessions] == ["python", "shell"]
            assert value(loaded, 0, "x + 1") == 42
            assert shell_output(loaded, 1, "pwd; cat file; echo $y") == "/tmp\nhi\n5\n"
            assert loaded.commands.run("echo $MODE; pwd").stdout == "kept\n/home/user\n"
            assert loaded.options.timeout_ms == 23_000


def shell_output(sandbox: Any, position: int, command: str) -> str:
    """What a command prints in a shell of `sandbox`."""
    return str(sandbox.sessions[position].run(command).stdout)


def test_bad_arguments_are_refused(sandbox: Any) -> None:
    with pytest.raises(ValueError, match="count"):
        sandbox.fork(0)
    with pytest.raises(ValueError, match="running"):
        sandbox.fork(running="maybe")
    with pytest.raises(ValueError, match="a name has 1 to 255 characters"):
        sandbox.snapshot("a/b")
    with pytest.raises(StateError, match="no snapshot has the name"):
        sandbox.restore("unknown")


def test_ports_of_twins_lead_to_their_own_servers(sandbox: Any) -> None:
    twin = sandbox.fork()
    answers = []
    for name, machine in (("original", sandbox), ("twin", twin)):
        machine.files.write("/tmp/w/index.html", name)
        machine.commands.start("cd /tmp/w && python3 -m http.server 8000")
        machine.ports.wait(8000)
        with machine.ports.connect(8000) as stream:
            stream.write(b"GET /index.html HTTP/1.0\r\n\r\n")
            got = b""
            while piece := stream.read():
                got += piece
        answers.append(got.rpartition(b"\r\n\r\n")[2].decode())
    twin.kill()
    assert answers == ["original", "twin"]


def test_a_snapshot_of_another_kind_of_sandbox_is_refused() -> None:
    with Sandbox() as local, Sandbox(isolation="process") as other:
        snapshot = local.snapshot()
        with pytest.raises(StateError, match="another kind of sandbox"):
            other.restore(snapshot)


def test_a_sandbox_that_is_killed_while_it_is_restored_stays_killed() -> None:
    class KilledMeanwhile(LocalBackend):
        def close(self) -> None:
            super().close()
            attachment.close()

    options = SandboxOptions()
    attachment = Attachment(KilledMeanwhile(options), options)
    restored = LocalBackend(options)
    with pytest.raises(SandboxClosedError):
        attachment.replace(restored)
    assert attachment.closed
    assert restored._machine.closed


def test_the_process_ends_with_its_last_sandbox_and_snapshot() -> None:
    import os

    def is_gone(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    sandbox = Sandbox(isolation="process")
    pid = sandbox._attachment.backend.pid  # type: ignore[attr-defined]
    twin = sandbox.fork()
    assert twin._attachment.backend.pid == pid  # type: ignore[attr-defined]
    snapshot = sandbox.snapshot()
    sandbox.kill()
    twin.kill()
    assert not is_gone(pid)
    with Sandbox.from_snapshot(snapshot) as copy:
        assert copy.commands.run("echo alive").stdout == "alive\n"
    assert not is_gone(pid)
    del snapshot, sandbox, twin, copy
    gc.collect()
    wait_until(lambda: is_gone(pid))
