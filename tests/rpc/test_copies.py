"""Snapshots, restore and fork over JSON-RPC: several sandboxes on one connection."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rpc.peer import Peer, peer
from wasmsand import Sandbox
from wasmsand.rpc.family import SANDBOXES_MAX, SNAPSHOTS_MAX


@pytest.fixture
def server() -> Iterator[Peer]:
    with peer() as made:
        made.create()
        yield made


def value(server: Peer, python: int, code: str, **where: object) -> Any:
    answer = server.call("python.run", python=python, code=code, **where)
    assert answer["error"] is None, answer
    return answer["value"]


def said(server: Peer, shell: int, command: str, **where: object) -> str:
    return str(server.call("shell.run", shell=shell, command=command, **where)["stdout"])


def test_copies_have_numbers_and_their_sessions_keep_theirs(server: Peer) -> None:
    server.call("python.close", python=server.call("python.open")["python"])
    python = server.call("python.open")["python"]
    shell = server.call("shell.open")["shell"]
    assert (python, shell) == (2, 1)
    value(server, python, "rows = list(range(100_000))")
    said(server, shell, "cd /tmp; x=7; f() { echo f $x; }")
    made = server.call("fork", count=2)["sandboxes"]
    assert [copy["sandbox"] for copy in made] == [2, 3]
    kinds = [{k: v for k, v in each.items() if k != "pid"} for each in made[0]["sessions"]]
    assert kinds == [{"kind": "python", "python": 2}, {"kind": "shell", "shell": 1}]
    assert server.call("sessions", sandbox=2) == {"sessions": made[0]["sessions"]}
    for number in (2, 3):
        change = f"rows.append({number}); [len(rows), rows[-1]]"
        assert value(server, python, change, sandbox=number) == [100_001, number]
        assert said(server, shell, f"f; pwd; x={number}", sandbox=number) == "f 7\n/tmp\n"
        server.call("files.write", path="/tmp/n", data="aGk=", sandbox=number)
    assert said(server, shell, "f; ls /tmp") == "f 7\n"
    assert said(server, shell, "f", sandbox=3) == "f 3\n"
    # A session that is opened later has a number of its own.
    assert server.call("python.open", sandbox=2)["python"] == 3
    assert server.call("kill", sandbox=2) == {"ok": True}
    assert "no sandbox 2" in server.error("run", command="true", sandbox=2)["message"]
    assert value(server, python, "len(rows)") == 100_000
    assert server.call("kill", sandbox=1) == {"ok": True}
    assert "killed" in server.error("run", command="true")["message"]
    assert value(server, python, "len(rows)", sandbox=3) == 100_001
    assert server.call("fork", sandbox=3)["sandboxes"][0]["sandbox"] == 4
    assert server.call("kill") == {"ok": True}  # all of them
    assert server.ended() == 0


def test_snapshots_are_restored_opened_listed_and_deleted(server: Peer) -> None:
    python = server.call("python.open")["python"]
    value(server, python, "x = 1")
    server.call("env.set", name="MODE", value="before")
    taken = server.call("snapshot.create", name="start")
    assert (taken["name"], taken["sessions"]) == ("start", ["python"])
    assert taken["sizeBytes"] > 1_000_000
    value(server, python, "x = 2")
    server.call("env.set", name="MODE", value="after")
    command = server.call("commands.start", command=["sleep", "100"])["command"]
    later = server.call("python.open")["python"]
    restored = server.call("snapshot.restore", snapshot="start")
    assert restored["commands"] == []
    assert [each["python"] for each in restored["sessions"]] == [python]
    assert value(server, python, "x") == 1
    assert server.call("env.get", name="MODE") == {"value": "before"}
    assert server.error("commands.wait", command=command)["data"]["errno"] == "EBADF"
    assert server.error("python.run", python=later, code="1")["data"]["errno"] == "EBADF"
    opened = server.call("snapshot.open", snapshot=taken["snapshot"])
    assert opened["sandbox"] == 2
    assert value(server, python, "x + 1", sandbox=2) == 2
    assert server.call("snapshot.list") == {"snapshots": [taken]}
    assert server.call("snapshot.delete", snapshot="start") == {"ok": True}
    error = server.error("snapshot.restore", snapshot="start")
    assert error["message"] == "ENOENT: no snapshot has the name 'start'"


def test_notifications_of_a_copy_name_it(server: Peer) -> None:
    assert server.call("fork")["sandboxes"][0]["sandbox"] == 2
    server.send(
        '{"jsonrpc":"2.0","id":"s","method":"commands.start","params":'
        '{"sandbox":2,"command":["echo","hi"],"stream":true}}'
    )
    assert server.receive()["id"] == "s"
    output, exit_ = server.receive(), server.receive()
    assert output["params"] == {"sandbox": 2, "command": 1, "fd": 1, "data": "aGkK"}
    assert (exit_["method"], exit_["params"]["sandbox"]) == ("commands.exit", 2)


def test_what_runs_is_refused_or_dropped(server: Peer) -> None:
    server.call("commands.start", command=["sleep", "100"])
    error = server.error("fork")
    assert error["data"] == {"errno": "EBUSY", "kind": "state", "code": "cannot_copy"}
    assert "a command runs" in error["message"]
    assert server.call("fork", running="drop")["sandboxes"][0]["sessions"] == []


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("fork", {"count": 0}, "count must be from 1 to 64"),
        ("fork", {"count": "two"}, "count must be a number"),
        ("fork", {"running": "maybe"}, "running must be"),
        ("fork", {"commands": [7]}, "7 was not captured"),
        ("snapshot.create", {"name": "a/b"}, "a name has 1 to 255 characters"),
        ("snapshot.create", {"name": ""}, "a name has 1 to 255 characters"),
        ("snapshot.create", {"name": "x" * 256}, "a name has 1 to 255 characters"),
        ("snapshot.create", {"name": 7}, "name must be a string"),
        ("snapshot.restore", {"snapshot": "none"}, "no snapshot has the name 'none'"),
        ("snapshot.open", {"snapshot": "../x"}, "no snapshot has the name '../x'"),
        ("snapshot.delete", {}, "snapshot is missing"),
        ("commands.capture", {"command": 3}, "no command 3"),
        ("commands.captured", {"command": 3}, "no command 3"),
        ("run", {"command": "true", "sandbox": 9}, "no sandbox 9"),
        ("run", {"command": "true", "sandbox": "one"}, "sandbox must be a number"),
        ("run", {"command": "true", "sandbox": None}, "sandbox must be a number"),
    ],
)
def test_bad_requests_are_refused(
    server: Peer, method: str, params: dict[str, object], message: str
) -> None:
    assert message in server.error(method, **params)["message"]
    assert server.call("snapshot.list") == {"snapshots": []}
    assert server.call("run", command="echo ok")["stdout"] == "ok\n"


def test_copies_and_snapshots_are_bounded(server: Peer) -> None:
    made = server.call("fork", count=SANDBOXES_MAX - 1)["sandboxes"]
    assert len(made) == SANDBOXES_MAX - 1
    assert "sandboxes already" in server.error("fork")["message"]
    server.call("kill", sandbox=2)
    server.call("fork")
    for _ in range(SNAPSHOTS_MAX):
        server.call("snapshot.create")
    assert "snapshots already" in server.error("snapshot.create")["message"]
    server.call("snapshot.delete", snapshot=server.call("snapshot.list")["snapshots"][0]["name"])
    server.call("snapshot.create")


def test_a_snapshot_is_saved_as_a_stream(server: Peer) -> None:
    python = server.call("python.open")["python"]
    value(server, python, "x = 41")
    server.call("snapshot.create", name="all")
    stream = server.call("snapshot.save", snapshot="all")["stream"]
    content = b""
    while (piece := server.call("streams.read", stream=stream)["data"]) is not None:
        content += base64.b64decode(piece)
    with Sandbox.load(io.BytesIO(content)) as loaded:
        assert loaded.sessions[0].run("x + 1").value == 42  # type: ignore[union-attr]
    seen = [{"was": 1, "kind": "perl", "identity": "x"}]
    error = server.error("snapshot.save", snapshot="all", sessions=seen)
    assert "a session is of the kind shell or python" in error["message"]


def saved_sandbox() -> bytes:
    stream = io.BytesIO()
    with Sandbox(env={"A": "b"}) as sandbox:
        sandbox.python().run("x = 41")
        sandbox.shell().run("cd /usr; y=5")
        sandbox.save(stream)
    return stream.getvalue()


def send(server: Peer, content: bytes, **params: object) -> int:
    stream = int(server.call("load", **params)["stream"])
    for begin in range(0, len(content), 100_000):
        data = base64.b64encode(content[begin : begin + 100_000]).decode()
        server.call("streams.write", stream=stream, data=data)
    return stream


def test_a_saved_sandbox_is_loaded_instead_of_created() -> None:
    with peer() as server:
        server.call("streams.finish", stream=send(server, saved_sandbox(), savedOptions=True))
        loaded = server.call("loaded")
        kinds = [(each["kind"], each[each["kind"]]) for each in loaded["sessions"]]
        assert kinds == [("python", 1), ("shell", 2)]
        assert (loaded["variables"], loaded["commands"]) == ({"A": "b"}, [])
        assert value(server, 1, "x + 1") == 42
        assert said(server, 2, "pwd; echo $y $A") == "/usr\n5 b\n"
        printed = server.call("commands.run", command="echo $A")["stdout"]
        assert base64.b64decode(printed) == b"b\n"
        assert server.error("load")["data"]["errno"] == "EEXIST"


def test_a_file_that_is_no_sandbox_is_refused_and_another_one_can_be_loaded() -> None:
    with peer() as server:
        for content in (b"", b"nothing of ours" * 1000, saved_sandbox()[:-50]):
            stream = send(server, b"")
            data = base64.b64encode(content).decode()
            server.request("streams.write", stream=stream, data=data)
            refused = server.error("streams.finish", stream=stream)
            assert (refused["data"]["kind"], refused["data"]["code"]) == ("state", "state_file")
        assert server.error("loaded")["data"]["errno"] == "ENODEV"
        server.call("streams.finish", stream=send(server, saved_sandbox(), asCommands=True))
        loaded = server.call("loaded")
        assert [each["was"] for each in loaded["commands"]] == [0, 1]
        assert [each["kind"] for each in loaded["saved"]] == ["python", "shell"]
