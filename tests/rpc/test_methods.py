"""Methods beyond the specification: commands with streams, more of files, archives, usage."""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.rpc.peer import Peer
from wasmsand.rpc.methods import METHODS


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(data: str) -> bytes:
    return base64.b64decode(data)


def test_the_reference_lists_every_method_and_param(repository: Path) -> None:
    text = (repository / "docs" / "protocols" / "json-rpc.md").read_text("utf-8")
    words = set(re.findall(r"`([\w.]+)`", text))
    for method in METHODS.values():
        assert method.name in words, method.name
        for name in (*method.required, *method.optional):
            assert name in words, (method.name, name)
    families = r"(files|commands|env|streams|shell|python|packages|ports|terminals)\.\w+"
    notified = {"terminals.output", "terminals.exit"}
    listed = {word for word in words if re.fullmatch(families, word)} - notified
    assert listed <= METHODS.keys()


def test_a_command_that_is_started_talks(server: Peer) -> None:
    number = server.call("commands.start", command="while read x; do echo got $x; done")["command"]
    server.call("commands.write", command=number, data=encoded(b"one\n"))
    (output,) = server.call("commands.read", command=number)["outputs"]
    assert (output["fd"], decoded(output["data"])) == (1, b"got one\n")
    silent = server.call("commands.read", command=number, timeoutMs=50)
    assert silent == {"outputs": [], "timedOut": True}
    assert server.call("commands.wait", command=number, timeoutMs=0) == {"ended": None}
    server.call("commands.closeInput", command=number)
    assert server.call("commands.read", command=number) == {"outputs": [], "timedOut": False}
    ended = server.call("commands.wait", command=number)["ended"]
    assert (ended["exitCode"], ended["timedOut"], ended["notices"]) == (0, False, [])
    server.call("commands.release", command=number)
    error = server.error("commands.wait", command=number)
    assert (error["code"], error["message"]) == (1, f"EBADF: no command {number}")


def test_output_is_streamed_by_notifications(server: Peer) -> None:
    started = server.call(
        "commands.start", command="echo out; echo err >&2; exit 5", stdin="", stream=True
    )
    received: list[Any] = []
    while not received or received[-1]["method"] != "commands.exit":
        received.append(server.receive())
        assert "id" not in received[-1]
        assert received[-1]["params"]["command"] == started["command"]
    printed = {item["params"]["fd"]: decoded(item["params"]["data"]) for item in received[:-1]}
    assert printed == {1: b"out\n", 2: b"err\n"}
    assert received[-1]["params"]["exitCode"] == 5


def test_a_waiting_call_does_not_block_others(server: Peer) -> None:
    server.send(
        '{"jsonrpc":"2.0","id":"slow","method":"commands.run",'
        '"params":{"command":"sleep 1000","timeoutMs":null}}'
    )
    assert server.call("run", command="echo on")["stdout"] == "on\n"
    server.send('{"jsonrpc":"2.0","method":"commands.cancel","params":{"request":"slow"}}')
    response = server.receive()
    assert response["id"] == "slow"
    assert response["result"]["exitCode"] == 137


def test_kill_answers_waiting_calls_first(server: Peer) -> None:
    server.send(
        '{"jsonrpc":"2.0","id":"slow","method":"commands.run","params":{"command":"sleep 1000"}}'
    )
    server.send('{"jsonrpc":"2.0","id":"end","method":"kill"}')
    assert [server.receive()["id"], server.receive()["id"]] == ["slow", "end"]
    assert server.ended() == 0


def test_commands_run_gives_bytes(server: Peer) -> None:
    result = server.call(
        "commands.run", command=["printf", r"\377\n"], environ={"PATH": "/bin"}, timeoutMs=30_000
    )
    assert decoded(result.pop("stdout")) == b"\xff\n"
    assert result.pop("executionTimeMs") > 0
    assert result == {
        "exitCode": 0,
        "timedOut": False,
        "notices": [],
        "stderr": "",
        "truncated": False,
    }


def test_a_signal_reaches_a_process(server: Peer) -> None:
    started = server.call("commands.start", command=["sleep", "1000"], stdin="")
    (process,) = server.call("commands.list")["processes"]
    assert (process["pid"], process["argv"]) == (started["pid"], ["sleep", "1000"])
    server.call("commands.signal", pid=started["pid"], signal=15)
    assert server.call("commands.wait", command=started["command"])["ended"]["exitCode"] == 143
    error = server.error("commands.signal", pid=999_999, signal=15)
    assert error["message"].startswith("ESRCH: ")


def test_several_files_are_written_together(server: Peer) -> None:
    files = [
        {"path": "a/x", "data": encoded(b"one")},
        {"path": "y", "data": encoded(b"two"), "mode": 0o700},
    ]
    assert server.call("files.writeMany", files=files) == {"ok": True}
    assert server.call("run", command="cat a/x y; stat -c %a y")["stdout"] == "onetwo700\n"
    files = [{"path": "y", "data": ""}, {"path": "a", "data": ""}]
    assert "EISDIR" in server.error("files.writeMany", files=files)["message"]
    assert server.call("run", command="cat y")["stdout"] == "two"
    error = server.error("files.writeMany", files=[{"path": "y", "data": "", "size": 1}])
    assert error["message"].startswith("Invalid params: unknown parameter 'size'")


def test_a_command_of_root_and_the_end_of_a_process(server: Peer) -> None:
    assert server.call("run", command="id -un", user="root")["stdout"] == "root\n"
    assert "user must be" in server.error("run", command="id", user="ann")["message"]
    pid = server.call("commands.start", command="sleep 600; true")["pid"]
    assert server.call("commands.killProcess", pid=pid) == {"killed": True}
    assert server.call("commands.killProcess", pid=pid) == {"killed": False}


def test_the_rest_of_files(server: Peer) -> None:
    server.call("files.write", path="a/x", data=encoded(b"hello"), mode=0o700)
    server.call("files.append", path="a/x", data=encoded(b" you"))
    assert decoded(server.call("files.read", path="a/x", offset=1, count=4)["data"]) == b"ello"
    server.call("files.copy", source="a", target="b")
    server.call("files.rename", source="b/x", target="b/y")
    server.call("files.chmod", path="b/y", mode=0o640)
    server.call("files.symlink", target="y", path="b/link")
    assert server.call("files.readlink", path="b/link") == {"target": "y"}
    link = server.call("files.stat", path="b/link", follow=False, details=True)
    assert (link["type"], link["path"]) == ("symlink", "/home/user/b/link")
    entries = server.call("files.list", path="b", details=True, recursive=True)["entries"]
    assert [(entry["name"], entry["type"], entry["mode"]) for entry in entries] == [
        ("link", "symlink", 0o777),
        ("y", "file", 0o640),
    ]
    server.call("files.mkdir", path="b", parents=True)
    assert server.error("files.mkdir", path="c/d", parents=False)["data"]["errno"] == "ENOENT"
    server.call("files.rm", path="b", recursive=True)
    assert server.error("files.stat", path="b")["data"]["errno"] == "ENOENT"


def test_archives_go_in_and_out(server: Peer) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("d/x")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"hello"))
    number = server.call("files.importTar", path="/tmp/in")["stream"]
    for start in range(0, len(stream.getvalue()), 100):
        piece = stream.getvalue()[start : start + 100]
        server.call("streams.write", stream=number, data=encoded(piece))
    server.call("streams.finish", stream=number)
    assert server.call("run", command="cat /tmp/in/d/x")["stdout"] == "hello"

    number = server.call("files.exportTar", path="/tmp/in")["stream"]
    taken = bytearray()
    while (data := server.call("streams.read", stream=number)["data"]) is not None:
        taken += decoded(data)
    with tarfile.open(fileobj=io.BytesIO(taken)) as archive:
        assert "d/x" in [name.removeprefix("./") for name in archive.getnames()]
    server.call("streams.close", stream=number)
    assert server.error("streams.read", stream=number)["message"] == "EBADF: no stream 2"


def test_an_invalid_archive_is_an_error_and_an_import_can_be_abandoned(server: Peer) -> None:
    number = server.call("files.importTar", path="/tmp/in")["stream"]
    server.request("streams.write", stream=number, data=encoded(b"no archive" * 1000))
    assert server.request("streams.finish", stream=number)["error"]["code"] in (1, -32602)
    number = server.call("files.importTar", path="/tmp/in")["stream"]
    server.call("streams.close", stream=number)
    assert server.call("run", command="echo on")["stdout"] == "on\n"


def test_the_streams_of_a_client_are_bounded(server: Peer) -> None:
    for _ in range(64):
        server.call("files.importTar", path="/tmp/in")
    error = server.error("files.importTar", path="/tmp/in")
    assert (error["code"], error["message"]) == (
        1,
        "EMFILE: there are 64 streams already; close one",
    )
    server.call("streams.close", stream=1)
    server.call("files.importTar", path="/tmp/in")


def test_environment_and_usage(server: Peer) -> None:
    server.call("env.set", name="A", value="b")
    assert server.call("env.all")["variables"]["A"] == "b"
    server.call("env.unset", name="A")
    assert server.call("env.get", name="A") == {"value": None}
    usage = server.call("usage")
    assert usage["fsLimitBytes"] == 268435456
    assert usage["processes"] == 0


def test_a_shell_keeps_its_state(server: Peer) -> None:
    shell = server.call("shell.open", cwd="/tmp", env={"A": "b"})["shell"]
    assert server.call("shell.run", shell=shell, command="cd /; x=1; echo $A")["stdout"] == "b\n"
    result = server.call("shell.run", shell=shell, command="pwd; echo $x; false")
    assert (result["stdout"], result["exitCode"], result["timedOut"]) == ("/\n1\n", 1, False)
    assert server.call("shell.run", shell=shell, command="sleep 60", timeoutMs=300)["timedOut"]
    assert server.call("shell.run", shell=shell, command="echo $x")["stdout"] == "1\n"
    server.call("shell.close", shell=shell)
    error = server.error("shell.run", shell=shell, command="true")
    assert error["message"] == f"EBADF: no shell {shell}"


def test_an_interpreter_keeps_its_state(server: Peer) -> None:
    python = server.call("python.open")["python"]
    first = server.call("python.run", python=python, code="import math; x = 20")
    assert (first["value"], first["repr"], first["error"]) == (None, None, None)
    second = server.call("python.run", python=python, code="print('hi'); {'a': x + 1}")
    assert (second["stdout"], second["value"], second["repr"]) == ("hi\n", {"a": 21}, "{'a': 21}")
    third = server.call("python.run", python=python, code="math.inf")
    assert (third["value"], third["hasValue"], third["repr"]) == (None, False, "inf")
    fourth = server.call("python.run", python=python, code="(1, 2)")
    assert (fourth["value"], fourth["hasValue"], fourth["repr"]) == (None, False, "(1, 2)")
    assert (first["hasValue"], second["hasValue"]) == (False, True)
    failed = server.call("python.run", python=python, code="1/0")
    assert failed["error"]["type"] == "ZeroDivisionError"
    server.call("python.close", python=python)


def test_an_interpreter_sends_what_it_displays(server: Peer) -> None:
    python = server.call("python.open")["python"]
    code = (
        "from IPython.display import Image\n"
        "display({'a': 1}, Image(data=b'\\xff\\xd8\\xff\\x00'))\n"
        "class Table:\n    def _repr_html_(self): return '<b>'\n"
        "    def _repr_json_(self): return [1]\n    def __repr__(self): return 'T'\n"
        "Table()"
    )
    results = server.call("python.run", python=python, code=code)["results"]
    assert results == [
        {
            "data": {"text/plain": "{'a': 1}"},
            "metadata": {},
            "isMain": False,
            "displayId": None,
        },
        {
            "data": {
                "text/plain": "<IPython.core.display.Image object>",
                "image/jpeg": encoded(b"\xff\xd8\xff\x00"),
            },
            "metadata": {},
            "isMain": False,
            "displayId": None,
        },
        {
            "data": {"text/plain": "T", "text/html": "<b>", "application/json": [1]},
            "metadata": {},
            "isMain": True,
            "displayId": None,
        },
    ]


def test_an_interpreter_gets_lines_of_input(server: Peer) -> None:
    python = server.call("python.open")["python"]
    answered = server.call(
        "python.run", python=python, code="[input('? '), input()]", inputs=["one", "two"]
    )
    assert answered["value"] == ["one", "two"]
    missing = server.call("python.run", python=python, code="input(); input()", inputs=["one"])
    assert missing["error"]["type"] == "EOFError"
    none = server.call("python.run", python=python, code="input()")
    assert none["error"]["type"] == "EOFError"
    reading = server.call("python.open", stdin=encoded(b"line\n"))["python"]
    assert server.call("python.run", python=reading, code="input()")["value"] == "line"
    error = server.error("python.run", python=python, code="1", inputs="text")
    assert "inputs must be an array of strings" in error["message"]


def test_an_interpreter_streams_output_and_results(server: Peer) -> None:
    python = server.call("python.open")["python"]
    server.send(
        f'{{"jsonrpc":"2.0","id":7,"method":"python.run","params":{{"python":{python},'
        '"code":"print(1); display(2); import sys; print(3, file=sys.stderr)","stream":true}}'
    )
    received: list[Any] = []
    while not received or "id" not in received[-1]:
        received.append(server.receive())
    assert [item["method"] for item in received[:-1]] == [
        "python.output",
        "python.result",
        "python.output",
    ]
    first, shown, last = (item["params"] for item in received[:-1])
    assert first == {"python": python, "fd": 1, "text": "1\n"}
    assert (shown["python"], shown["data"]) == (python, {"text/plain": "2"})
    assert last == {"python": python, "fd": 2, "text": "3\n"}
    assert received[-1]["result"]["stdout"] == "1\n"


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("commands.start", {"command": 5}, "command must be a string or an array of strings"),
        ("commands.start", {"command": []}, "command must name a program"),
        ("commands.start", {"command": ["a", 1]}, "command must be a string or an array"),
        ("commands.start", {"command": "a", "extraInputs": [0]}, "extraInputs must be descriptors"),
        ("commands.start", {"command": "a", "extraOutputs": "3"}, "extraOutputs must be an array"),
        ("commands.read", {}, "command is missing"),
        ("commands.read", {"command": "1"}, "command must be a number, not a string"),
        ("commands.cancel", {"request": []}, "request must be a string or a number, not an array"),
        ("files.chmod", {"path": "/tmp", "mode": -1}, "mode must be"),
        ("files.read", {"path": "/tmp/x", "offset": -1}, "offset and count must not be negative"),
        ("files.rename", {"source": "/tmp/x"}, "target is missing"),
    ],
)
def test_wrong_params(shared: Peer, method: str, params: dict[str, object], message: str) -> None:
    error = shared.error(method, **params)
    assert error["code"] == -32602
    assert error["message"].startswith(f"Invalid params: {message}")


def test_fields_of_a_result_are_json(shared: Peer) -> None:
    assert json.dumps(shared.call("commands.list")) == '{"processes": []}'


def test_a_program_on_a_terminal(server: Peer) -> None:
    script = "tty; stty size; read x; stty size; exit 4"
    number = server.call("terminals.open", command=script, cols=100, rows=30)["terminal"]
    shown = b""
    while not shown.endswith(b"30 100\r\n"):
        shown += decoded(server.call("terminals.read", terminal=number)["data"])
    assert shown == b"/dev/pts/0\r\n30 100\r\n"
    silent = server.call("terminals.read", terminal=number, timeoutMs=50)
    assert silent == {"data": "", "timedOut": True}
    assert server.call("terminals.resize", terminal=number, cols=9, rows=8) == {"ok": True}
    typed = server.call("terminals.write", terminal=number, data=encoded(b"x\r"))
    assert typed == {"ok": True, "written": 2}
    assert server.call("terminals.wait", terminal=number) == {"exitCode": 4}
    assert decoded(server.call("terminals.read", terminal=number)["data"]) == b"x\r\n8 9\r\n"
    assert server.call("terminals.read", terminal=number) == {"data": "", "timedOut": False}
    server.call("terminals.release", terminal=number)
    assert server.error("terminals.wait", terminal=number)["message"] == (
        f"EBADF: no terminal {number}"
    )
    assert server.error("terminals.open", cols=0)["code"] == -32602
    assert server.error("terminals.open", rows=65536)["code"] == -32602
    assert server.error("terminals.open", command=[])["code"] == -32602


def test_a_terminal_is_hung_up_killed_and_streamed(server: Peer) -> None:
    number = server.call("terminals.open", command=["sleep", "100"])["terminal"]
    server.call("terminals.close", terminal=number)
    assert server.call("terminals.wait", terminal=number) == {"exitCode": 129}
    number = server.call("terminals.open", command=["sleep", "100"])["terminal"]
    server.call("terminals.kill", terminal=number)
    assert server.call("terminals.wait", terminal=number) == {"exitCode": 137}
    opened = server.call("terminals.open", command="echo hi; exit 2", stream=True)
    shown = b""
    while (note := server.receive())["method"] == "terminals.output":
        shown += decoded(note["params"]["data"])
    assert shown == b"hi\r\n"
    assert note["params"] == {"terminal": opened["terminal"], "exitCode": 2}
