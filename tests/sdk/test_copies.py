"""Snapshots, restore and fork: whole sandboxes with their live sessions."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from wasmsand import Sandbox, StateError
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.shell import Shell

ROWS = 100_000


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


def python_of(sandbox: Sandbox, position: int = 0) -> PythonSession:
    session = sandbox.sessions[position]
    assert isinstance(session, PythonSession)
    return session


def shell_of(sandbox: Sandbox, position: int = 0) -> Shell:
    session = sandbox.sessions[position]
    assert isinstance(session, Shell)
    return session


def test_three_twins_change_a_table_and_none_sees_the_others(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run(f"rows = [{{'id': n, 'value': n * 2}} for n in range({ROWS})]")
    twins = sandbox.fork(3)
    for number, twin in enumerate(twins):
        program = (
            f"for row in rows: row['value'] += {number}\nimport json; sum(r['value'] for r in rows)"
        )
        expected = ROWS * (ROWS - 1) + number * ROWS
        assert python_of(twin).run(program).value == expected
    assert session.run("sum(r['value'] for r in rows)").value == ROWS * (ROWS - 1)
    assert python_of(twins[1]).run("len(rows), rows[7]['value']").repr == f"({ROWS}, 15)"
    for twin in twins:
        twin.kill()


def test_a_shell_is_copied_with_everything_that_it_has(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    shell.run(
        "mkdir -p /tmp/deep/er; cd /tmp/deep; name=kept; list=(a 'b c' d); declare -A map=([k]=v)\n"
        "greet() { echo hello $1 from $name; }; alias ll='ls -l'; shopt -s extglob nullglob\n"
        "trap 'echo interrupted' USR1; trap 'echo bye' EXIT; umask 027; set -o pipefail\n"
        "exec 7</etc/hostname; readonly fixed=1; export seen=outside"
    )
    twin = sandbox.fork()
    copy = shell_of(twin)
    script = (
        "pwd; greet you; printf '<%s>' \"${list[@]}\"; echo ${map[k]} $fixed $(umask); cat <&7\n"
        "trap -p; shopt extglob; kill -USR1 $$; bash -c 'echo $seen'; false | true; echo $?"
    )
    expected = shell.run(script).stdout
    assert "hello you from kept" in expected
    assert copy.run(script).stdout == expected.replace("sandbox\n", "sandbox\n")
    copy.run("cd /; name=other; greet() { echo changed; }")
    assert shell.run("pwd; greet you").stdout == "/tmp/deep\nhello you from kept\n"
    assert copy.run("pwd; greet you").stdout == "/\nchanged\n"
    twin.kill()


def test_sessions_are_at_the_same_positions_and_closed_ones_are_not_there(sandbox: Sandbox) -> None:
    first, second, third = sandbox.python(), sandbox.shell(), sandbox.python()
    first.run("me = 'first'")
    third.run("me = 'third'")
    second.run("me=second")
    assert sandbox.sessions == [first, second, third]
    first.close()
    with sandbox.fork() as twin:
        assert [session.kind for session in twin.sessions] == ["shell", "python"]
        assert shell_of(twin, 0).run("echo $me").stdout == "second\n"
        assert python_of(twin, 1).run("me").value == "third"


def test_open_files_keep_their_positions_even_without_a_name(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run(
        "import os, tempfile\n"
        "f = open('/tmp/log', 'w+'); f.write('one '); f.flush()\n"
        "hidden = tempfile.TemporaryFile(); hidden.write(b'secret text'); hidden.seek(7)\n"
        "os.chdir('/usr'); null = open('/dev/null'); d = os.open('/tmp', os.O_DIRECTORY)\n"
        "r, w = os.pipe(); os.write(w, b'waiting')"
    )
    with sandbox.fork() as twin:
        copy = python_of(twin)
        copy.run("f.write('two'); f.flush(); os.unlink('/tmp/log')")
        assert copy.run("f.seek(0); f.read()").value == "one two"
        assert copy.run("hidden.read().decode()").value == "text"
        assert copy.run("os.getcwd(), os.read(r, 100), null.read(), len(os.listdir(d))").repr == (
            "('/usr', b'waiting', '', 0)"
        )
        assert session.run("open('/tmp/log').read(), hidden.read(), os.read(r, 3)").repr == (
            "('one ', b'text', b'wai')"
        )
        before = twin.usage().fs_bytes
        copy.run("hidden.close()")
        assert twin.usage().fs_bytes <= before


def test_restore_goes_back_and_session_objects_go_on(sandbox: Sandbox) -> None:
    sandbox.env.set("MODE", "before")
    session, shell = sandbox.python(), sandbox.shell()
    session.run("n = 1")
    shell.run("n=1; echo one > /tmp/file")
    snapshot = sandbox.snapshot("start")
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
    session.close()
    sandbox.restore(snapshot)  # a closed session is back
    assert session.run("n").value == 1


def test_snapshots_form_a_tree_and_outlive_their_sandbox() -> None:
    with Sandbox() as sandbox:
        sandbox.python().run("trail = []")
        made = {}
        for name in "abc":
            python_of(sandbox).run(f"trail.append({name!r})")
            sandbox.files.write(f"/tmp/{name}", name)
            made[name] = sandbox.snapshot(name)
            if name == "b":
                sandbox.restore("a")
                python_of(sandbox).run("trail.append('x')")
                made["x"] = sandbox.snapshot("x")
                sandbox.restore("b")
        assert [snapshot.name for snapshot in sandbox.snapshots] == ["a", "b", "x", "c"]
        sandbox.snapshots.delete("b")
        with pytest.raises(
            StateError, match="no snapshot has the name 'b'; there are: 'a', 'x', 'c'"
        ):
            sandbox.restore("b")
    trails = {"a": ["a"], "b": ["a", "b"], "x": ["a", "x"], "c": ["a", "b", "c"]}
    for name, trail in trails.items():
        for _ in range(2):
            with Sandbox.from_snapshot(made[name]) as copy:
                assert python_of(copy).run("trail").value == trail
                files = sorted(entry.name for entry in copy.files.list("/tmp"))
                assert files == [n for n in trail if n != "x"]


@pytest.mark.parametrize(
    ("program", "obstacle"),
    [
        ("import subprocess; p = subprocess.Popen(['sleep', '100'])", r"still runs: sleep \(pid"),
        ("import threading; t = threading.Thread(target=threading.Event().wait); t.daemon = True; "
         "t.start()", "threads"),
        ("import socket; s = socket.socket()", "descriptor .* is a StreamSocket"),
        ("import socket; a, b = socket.socketpair()", "descriptor"),
        ("import select; e = select.epoll()", "descriptor"),
        ("f = open('/proc/self/status')", "another file system"),
    ],
)  # fmt: skip
def test_what_cannot_be_copied_is_named_or_dropped(
    sandbox: Sandbox, program: str, obstacle: str
) -> None:
    session = sandbox.python()
    assert session.run(program).error is None
    with pytest.raises(StateError, match=rf"session 0 \(python\) cannot be copied: .*{obstacle}"):
        sandbox.fork()
    with sandbox.fork(running="drop") as twin:
        assert twin.sessions == []
        assert twin.commands.run("echo fine").stdout == "fine\n"
    assert session.run("1 + 1").value == 2


def test_a_thread_that_has_ended_is_no_obstacle(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run("import threading; t = threading.Thread(target=print); t.start(); t.join(); n = 5")
    with sandbox.fork() as twin:
        assert python_of(twin).run("n").value == 5


def test_a_command_and_a_request_that_run_are_obstacles(sandbox: Sandbox) -> None:
    with sandbox.commands.start("sleep 100") as command:
        with pytest.raises(StateError, match=r"a command runs \(pid \d+: .*sleep 100\)"):
            sandbox.snapshot()
        command.kill()
    session = sandbox.python()
    running = threading.Thread(target=lambda: session.run("import time; time.sleep(2)"))
    running.start()
    time.sleep(0.5)
    with pytest.raises(StateError, match="it runs a request"):
        sandbox.fork()
    running.join()
    sandbox.fork().kill()


def test_a_background_job_of_a_shell_is_an_obstacle(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    # The child executes the program a moment after the shell has started it.
    shell.run("sleep 100 & until pgrep -x sleep; do :; done")
    with pytest.raises(StateError, match=r"session 0 \(shell\).*still runs: sleep"):
        sandbox.fork()
    shell.run("kill %1; wait")
    with sandbox.fork() as twin:
        assert shell_of(twin).run("echo alive").stdout == "alive\n"


def test_a_copy_reacts_to_timeouts_signals_and_its_own_end(sandbox: Sandbox) -> None:
    session, shell = sandbox.python(), sandbox.shell()
    session.run("n = 1")
    shell.run("n=1")
    with sandbox.fork() as twin:
        copy, other = python_of(twin), shell_of(twin, 1)
        assert copy.run("while True: pass", timeout_ms=500).timed_out
        assert copy.run("n").value == 1
        assert other.run("sleep 100", timeout_ms=500).timed_out
        assert other.run("echo $n").stdout == "1\n"
        assert copy.run("import os; os._exit(3)").error is not None
        assert copy.closed
        assert other.run("exit 4").exit_code == 4
    assert session.run("n").value == 1
    assert session.finish().exit_code == 0


def test_a_copy_of_a_copy_and_many_in_a_row(sandbox: Sandbox) -> None:
    sandbox.python().run("depth = 0")
    sandbox.shell().run("depth=0")
    current = sandbox
    for depth in range(1, 30):
        twin = current.fork()
        assert python_of(twin).run("depth += 1; depth").value == depth
        assert shell_of(twin, 1).run("depth=$((depth + 1)); echo $depth").stdout == f"{depth}\n"
        if current is not sandbox:
            current.kill()
        current = twin
    current.kill()
    assert python_of(sandbox).run("depth").value == 0


def test_random_numbers_for_keys_differ_between_copies(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run("import ssl, secrets, uuid; ssl.RAND_bytes(8)")
    one, two = sandbox.fork(2)
    drawn = {
        python_of(each).run(f"{source}.hex()").value
        for each in (sandbox, one, two)
        for source in ("ssl.RAND_bytes(16)", "secrets.token_bytes(16)", "uuid.uuid4().bytes")
    }
    assert len(drawn) == 9
    one.kill()
    two.kill()


def test_memory_of_a_copy_is_charged_and_limited() -> None:
    with Sandbox(memory_limit_bytes=200_000_000) as sandbox:
        sandbox.python().run(
            "data = bytearray(60_000_000)\nfor i in range(0, len(data), 4096): data[i] = 1"
        )
        before = sandbox.usage().memory_bytes
        with sandbox.fork() as twin:
            assert abs(twin.usage().memory_bytes - before) < 20_000_000
            result = python_of(twin).run("more = bytearray(190_000_000)")
            assert result.error is not None
            assert result.error.type == "MemoryError"
            assert python_of(twin).run("len(data)").value == 60_000_000


def test_what_twins_write_is_counted_only_there(sandbox: Sandbox) -> None:
    sandbox.commands.run("head -c 1000000 /dev/zero > /tmp/a")
    before = sandbox.usage().fs_bytes
    with sandbox.fork() as twin:
        assert twin.usage().fs_bytes == before
        twin.commands.run("rm /tmp/a; head -c 3000000 /dev/zero > /tmp/b")
        assert twin.usage().fs_bytes > before + 1_900_000
        assert sandbox.usage().fs_bytes == before


@pytest.mark.parametrize("name", ["", "a/b", "x" * 256, "nul\0"])
def test_a_bad_name_is_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ValueError, match="a name has 1 to 255 characters"):
        sandbox.snapshot(name)


def test_bad_arguments_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="count"):
        sandbox.fork(0)
    with pytest.raises(ValueError, match="running"):
        sandbox.fork(running="maybe")  # type: ignore[call-overload]
    sandbox.kill()
    with pytest.raises(Exception, match="killed"):
        sandbox.snapshot()


@pytest.mark.parametrize("seed", range(4))
def test_random_operations_agree_with_a_model(seed: int) -> None:
    """Files and variables of a session, through writes, snapshots, restores and forks."""
    chance = random.Random(seed)
    with Sandbox() as first:
        first.python().run("names = {}")
        live: list[tuple[Sandbox, dict[str, str]]] = [(first, {})]
        kept: list[tuple[object, dict[str, str]]] = []
        for step in range(60):
            sandbox, model = chance.choice(live)
            act = chance.choice(("write", "write", "remove", "snapshot", "restore", "fork"))
            if act == "write":
                name, text = f"f{chance.randrange(8)}", f"{step}" * chance.randrange(1, 2000)
                sandbox.files.write(f"/tmp/{name}", text)
                python_of(sandbox).run(f"names[{name!r}] = {len(text)}")
                model[name] = text
            elif act == "remove" and model:
                name = chance.choice(sorted(model))
                sandbox.commands.run(f"rm /tmp/{name}")
                python_of(sandbox).run(f"del names[{name!r}]")
                del model[name]
            elif act == "snapshot":
                kept.append((sandbox.snapshot(), dict(model)))
            elif act == "restore" and kept:
                snapshot, then = chance.choice(kept)
                sandbox.restore(snapshot)  # type: ignore[arg-type]
                model.clear()
                model.update(then)
            elif act == "fork" and len(live) < 5:
                live.append((sandbox.fork(), dict(model)))
            for each, expected in live:
                found = {e.name: each.files.read_text(e.path) for e in each.files.list("/tmp")}
                assert found == expected
                lengths = python_of(each).run("names").value
                assert lengths == {name: len(text) for name, text in expected.items()}
        for each, _ in live[1:]:
            each.kill()
