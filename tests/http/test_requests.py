"""Every request once, as a client in another language would send it."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
import tarfile
import time
from pathlib import Path
from urllib.parse import quote

from tests.http.server import Client, events


def test_a_sandbox_from_creation_to_its_end(client: Client) -> None:
    created = client.ask("POST", "/v1/sandboxes")
    assert created.status == 201
    state = created.json
    assert list(state) == [
        "id",
        "created_at",
        "expires_in_seconds",
        "cwd",
        "timeout_ms",
        "max_command_seconds",
        "state",
        "metadata",
        "limits",
        "accounting",
        "is_stored",
    ]
    assert (state["state"], state["metadata"], state["is_stored"]) == ("running", {}, False)
    assert (state["cwd"], state["timeout_ms"]) == ("/home/user", 30_000)
    assert 590 < state["expires_in_seconds"] <= 600
    assert abs(state["created_at"] - time.time()) < 60
    path = f"/v1/sandboxes/{state['id']}"
    assert client.ask("GET", path).json["id"] == state["id"]
    listed = client.ask("GET", "/v1/sandboxes").json["sandboxes"]
    assert state["id"] in [item["id"] for item in listed]
    assert client.ask("DELETE", path).json == {"killed": True}
    assert client.ask("GET", path).error[:2] == (404, "sandbox_not_found")


def test_options_of_a_sandbox(client: Client) -> None:
    path = client.create(cwd="/srv/work", env={"A": "b"}, timeout_ms=200, idle_seconds=5)
    assert client.run(path, "pwd; echo $A").json["stdout"] == "/srv/work\nb\n"
    assert client.run(path, "sleep 20").json["timed_out"] is True
    assert client.ask("GET", path).json["expires_in_seconds"] <= 5
    client.ask("DELETE", path)


def test_run_gives_all_of_a_command(client: Client, sandbox: str) -> None:
    answer = client.run(sandbox, "echo out; echo err >&2; exit 3").json
    assert answer.pop("execution_time_ms") > 0
    assert answer == {
        "stdout": "out\n",
        "stderr": "err\n",
        "exit_code": 3,
        "timed_out": False,
        "truncated": False,
        "notices": [],
    }


def test_output_that_is_not_utf8_is_base64(client: Client, sandbox: str) -> None:
    answer = client.run(sandbox, r"printf '\xff'").json
    assert answer["stdout_base64"] == "/w=="
    assert "stdout" not in answer


def test_run_with_every_option(client: Client, sandbox: str) -> None:
    answer = client.run(
        sandbox, "pwd; echo $A; cat", env={"A": "x"}, cwd="/tmp", timeout_ms=5000, stdin="in"
    )
    assert answer.json["stdout"] == "/tmp\nx\nin"
    assert client.run(sandbox, ["cat"], stdin_base64="/w==").json["stdout_base64"] == "/w=="
    answer = client.run(sandbox, ["/bin/env"], environ={"ONLY": "this"})
    assert answer.json["stdout"] == "ONLY=this\n"


def test_a_stream_of_events(client: Client, sandbox: str) -> None:
    answer = client.ask(
        "POST",
        f"{sandbox}/run",
        {"command": r"echo one; sleep 0.3; echo two >&2; sleep 0.3; printf '\xff'; exit 4"},
        headers={"Accept": "text/event-stream"},
    )
    assert (answer.status, answer.headers["content-type"]) == (
        200,
        "text/event-stream; charset=utf-8",
    )
    found = events(answer.body)
    assert found[:-1] == [
        ("output", {"fd": 1, "text": "one\n"}),
        ("output", {"fd": 2, "text": "two\n"}),
        ("output", {"fd": 1, "base64": "/w=="}),
    ]
    name, end = found[-1]
    assert (name, end["exit_code"], end["timed_out"]) == ("end", 4, False)


def test_a_command_that_cannot_be_started_is_no_stream(client: Client, sandbox: str) -> None:
    answer = client.ask(
        "POST",
        f"{sandbox}/run",
        {"command": ["no-such-program"]},
        headers={"Accept": "text/event-stream"},
    )
    assert answer.error[:2] == (422, "command_error")
    assert answer.json["error"]["errno"] == "ENOENT"


def test_a_started_command(client: Client, sandbox: str) -> None:
    wanted = {"command": "read a; echo got $a; read b; exit 5", "open_stdin": True}
    started = client.ask("POST", f"{sandbox}/commands", wanted)
    assert started.status == 201
    assert started.json["end"] is None
    command = f"{sandbox}/commands/{started.json['id']}"
    assert client.ask("GET", f"{command}?wait_ms=100").json["end"] is None
    client.ask("POST", f"{command}/input", body=b"foo\n")

    batch = client.ask("GET", f"{command}/output?wait_ms=20000").json
    pieces = [{"fd": 1, "text": "got foo\n"}]
    uncounted = batch["uncounted_ms"]  # the server may have compiled a program
    assert batch == {"number": 1, "pieces": pieces, "ended": False, "uncounted_ms": uncounted}
    # A lost answer can be requested again.
    assert client.ask("GET", f"{command}/output?wait_ms=20000").json == batch
    nothing = client.ask("GET", f"{command}/output?after=1&wait_ms=50").json
    assert (nothing["number"], nothing["pieces"], nothing["ended"]) == (1, [], False)
    assert client.ask("GET", f"{command}/output?after=7").error[:2] == (409, "batch_gone")

    listed = client.ask("GET", f"{sandbox}/commands").json["commands"]
    assert listed == [{**started.json, "batch": 1}]
    client.ask("DELETE", f"{command}/input")
    end = client.ask("GET", f"{command}?wait_ms=20000").json["end"]
    assert (end["exit_code"], end["timed_out"]) == (5, False)
    last = client.ask("GET", f"{command}/output?after=1&wait_ms=20000").json
    assert (last["number"], last["pieces"], last["ended"]) == (2, [], True)
    assert client.ask("DELETE", command).status == 200
    assert client.ask("GET", command).error[:2] == (404, "command_not_found")


def test_processes_and_signals(client: Client, sandbox: str) -> None:
    started = client.ask("POST", f"{sandbox}/commands", {"command": ["sleep", "60"]}).json
    found = client.ask("GET", f"{sandbox}/processes").json["processes"]
    assert [(item["pid"], item["argv"]) for item in found] == [(started["pid"], ["sleep", "60"])]
    client.ask("POST", f"{sandbox}/processes/{started['pid']}/signal", {"signal": 15})
    command = f"{sandbox}/commands/{started['id']}"
    assert client.ask("GET", f"{command}?wait_ms=20000").json["end"]["exit_code"] == 143


def test_killing_a_started_command(client: Client, sandbox: str) -> None:
    started = client.ask("POST", f"{sandbox}/commands", {"command": "sleep 60"}).json
    command = f"{sandbox}/commands/{started['id']}"
    client.ask("POST", f"{command}/kill")
    assert client.ask("GET", f"{command}?wait_ms=20000").json["end"]["exit_code"] == 137


def test_variables(client: Client, sandbox: str) -> None:
    changed = client.ask("PATCH", f"{sandbox}/env", {"set": {"A": "1", "LANG": "C"}}).json["env"]
    assert (changed["A"], changed["LANG"]) == ("1", "C")
    assert client.run(sandbox, "echo $A $LANG").json["stdout"] == "1 C\n"
    client.ask("PATCH", f"{sandbox}/env", {"unset": ["A", "LANG"]})
    found = client.ask("GET", f"{sandbox}/env").json["env"]
    assert "A" not in found
    assert found["LANG"] == "C.UTF-8"


def test_usage(client: Client, sandbox: str) -> None:
    usage = client.ask("GET", f"{sandbox}/usage").json
    assert (usage["processes"], usage["max_processes"]) == (0, 64)


def test_a_file_goes_in_and_out_as_it_is(client: Client, sandbox: str) -> None:
    data = bytes(range(256)) * 4096
    assert client.ask("PUT", f"{sandbox}/files?path=/tmp/data&mode=384", body=data).status == 200
    answer = client.ask("GET", f"{sandbox}/files?path=/tmp/data")
    assert answer.headers["content-length"] == str(len(data))
    assert answer.body == data
    part = client.ask("GET", f"{sandbox}/files?path=/tmp/data&offset=65&count=3")
    assert part.body == b"ABC"
    assert client.ask("GET", f"{sandbox}/files/stat?path=/tmp/data").json["mode"] == 0o600


def test_names_that_are_not_utf8(client: Client, sandbox: str) -> None:
    client.ask("PUT", f"{sandbox}/files?path=/tmp/%FF", body=b"x")
    assert client.run(sandbox, "ls /tmp | od -An -tx1").json["stdout"] == " ff 0a\n"
    entries = client.ask("GET", f"{sandbox}/files/list?path=/tmp").json["entries"]
    assert [entry["name"] for entry in entries] == ["\udcff"]
    copied = client.ask("POST", f"{sandbox}/files/copy", {"source": "/tmp/\udcff", "target": "/b"})
    assert copied.status == 200
    assert client.ask("GET", f"{sandbox}/files?path=/b").body == b"x"


def test_every_other_request_for_files(client: Client, sandbox: str) -> None:
    ask = client.ask
    files = f"{sandbox}/files"
    ask("POST", f"{files}/mkdir", {"path": "d/e"})
    ask("POST", f"{files}/append?path=d/log", body=b"one ")
    ask("POST", f"{files}/append?path=d/log", body=b"two")
    assert ask("GET", f"{files}?path=d/log").body == b"one two"
    ask("POST", f"{files}/symlink", {"path": "d/link", "target": "log"})
    assert ask("GET", f"{files}/link?path=d/link").json == {"target": "log"}
    assert ask("GET", f"{files}/stat?path=d/link&follow=false").json["type"] == "symlink"
    ask("POST", f"{files}/copy", {"source": "d", "target": "copy"})
    ask("POST", f"{files}/rename", {"source": "copy/log", "target": "copy/LOG"})
    ask("POST", f"{files}/chmod", {"path": "copy/LOG", "mode": 0o400})
    entries = ask("GET", f"{files}/list?path=copy&recursive=true").json["entries"]
    assert [(entry["name"], entry["mode"]) for entry in entries] == [
        ("LOG", 0o400),
        ("e", 0o755),
        ("link", 0o777),
    ]
    assert ask("DELETE", f"{files}?path=d").error[:2] == (409, "directory_not_empty")
    assert ask("DELETE", f"{files}?path=d&recursive=true").status == 200
    assert [entry["name"] for entry in ask("GET", f"{files}/list").json["entries"]] == ["copy"]


def test_archives(client: Client, sandbox: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("in/side")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"data"))
    answer = client.ask("PUT", f"{sandbox}/files/tar?path=/srv", body=packed.getvalue())
    assert answer.status == 200
    assert client.ask("GET", f"{sandbox}/files?path=/srv/in/side").body == b"data"
    answer = client.ask("GET", f"{sandbox}/files/tar?path=/srv")
    assert answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        content = archive.extractfile("in/side")
        assert content is not None
        assert content.read() == b"data"


def test_a_path_with_every_kind_of_character(client: Client, sandbox: str) -> None:
    name = "/tmp/a b+c&d=e?#%ü\n"
    client.ask("PUT", f"{sandbox}/files?path={quote(name)}", body=b"x")
    entries = client.ask("GET", f"{sandbox}/files/list?path=/tmp").json["entries"]
    assert [entry["name"] for entry in entries] == [name.removeprefix("/tmp/")]


def test_health(client: Client) -> None:
    assert client.ask("GET", "/healthz").json["status"] == "ok"


def test_metrics_count_what_was_done(client: Client, sandbox: str) -> None:
    client.run(sandbox, "true")
    client.run(sandbox, "false")
    answer = client.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    numbers = dict(
        line.rsplit(" ", 1) for line in answer.body.decode().splitlines() if line[0] != "#"
    )
    assert float(numbers['wasmsand_commands_total{outcome="success"}']) >= 1
    assert float(numbers['wasmsand_commands_total{outcome="failure"}']) >= 1
    assert float(numbers["wasmsand_sandboxes"]) >= 1
    assert float(numbers["process_open_fds"]) > 0
    labels = 'method="POST",route="/v1/sandboxes/{sandbox}/run",status="200"'
    assert float(numbers[f"wasmsand_http_requests_total{{{labels}}}"]) >= 2
    assert sandbox.rpartition("/")[2] not in answer.body.decode()


def test_long_answers_are_whole(client: Client, sandbox: str) -> None:
    text = "".join(f"{number} ä€😀\n" for number in range(100_000))
    assert client.ask("PUT", f"{sandbox}/files?path=big", body=text.encode()).status == 200
    assert client.run(sandbox, "cat big").json["stdout"] == text
    answer = client.run(sandbox, "cat big; printf '\\xff' >&2; cat big >&2").json
    assert answer["stdout"] == text
    assert base64.b64decode(answer["stderr_base64"]) == b"\xff" + text.encode()
    assert client.run(sandbox, "mkdir d; cd d; touch {1..2000}").json["exit_code"] == 0
    entries = client.ask("GET", f"{sandbox}/files/list?path=d").json["entries"]
    assert len({entry["name"] for entry in entries}) == 2000
    big = b"0123456789abcdef" * (20 * 1024 * 1024 // 16) + b"end"
    assert client.ask("PUT", f"{sandbox}/files?path=bigger", body=big).status == 200
    assert client.ask("GET", f"{sandbox}/files?path=bigger").body == big
    part = client.ask("GET", f"{sandbox}/files?path=bigger&offset=5&count=18000000").body
    assert part == big[5 : 5 + 18_000_000]


def test_several_files_are_written_together(client: Client) -> None:
    sandbox = client.create()
    files = [
        {"path": "a.txt", "text": "é\n"},
        {
            "path": "bin/run",
            "base64": base64.b64encode(b"#!/bin/sh\necho ran\n").decode(),
            "mode": 493,
        },
    ]
    assert client.ask("POST", f"{sandbox}/files/batch", {"files": files}).json == {"ok": True}
    assert client.run(sandbox, "cat a.txt; bin/run").json["stdout"] == "é\nran\n"
    files = [{"path": "a.txt", "text": "new"}, {"path": "bin", "text": "a directory"}]
    failed = client.ask("POST", f"{sandbox}/files/batch", {"files": files})
    assert failed.json["error"]["path"] == "/home/user/bin"
    assert client.run(sandbox, "cat a.txt").json["stdout"] == "é\n"
    for bad in ({"path": "x"}, {"path": "x", "text": "", "base64": ""}):
        answer = client.ask("POST", f"{sandbox}/files/batch", {"files": [bad]})
        assert answer.error == (
            400,
            "invalid_value",
            "files[0] must have either text or base64",
        )


def test_a_command_of_root_and_the_end_of_a_process(client: Client) -> None:
    sandbox = client.create()
    body = {"command": "id -un", "user": "root"}
    assert client.ask("POST", f"{sandbox}/run", body).json["stdout"] == "root\n"
    assert client.ask("POST", f"{sandbox}/run", {**body, "user": "ann"}).status == 400
    started = client.ask("POST", f"{sandbox}/commands", {"command": "sleep 600; true"}).json
    kill = f"{sandbox}/processes/{started['pid']}/kill"
    assert client.ask("POST", kill).json == {"killed": True}
    assert client.ask("POST", kill).json == {"killed": False}
    assert client.ask("POST", f"{sandbox}/processes/x/kill").status == 400


def test_a_browser_that_opens_the_server_sees_its_reference(client: Client) -> None:
    first = client.ask("GET", "/")
    assert (first.status, first.headers["location"]) == (307, "/docs")
    page = client.ask("GET", "/docs")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; ")
    assert f"URL={client.url}\n".encode() in page.body
    assert b"/v1/sandboxes/{sandbox}/run" in page.body


def test_the_session_that_the_reference_prints(client: Client, repository: Path) -> None:
    page = (repository / "docs/protocols/http.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(\$ curl -s -X POST.*?)^```$", page, re.DOTALL | re.MULTILINE)
    create, run = [part.split("\n{") for part in block.replace("\\\n", " ").split("\n\n")]
    printed = [json.loads("{" + answer.replace("{…}", "{}")) for _, answer in (create, run)]
    assert create[0] == "$ curl -s -X POST http://127.0.0.1:8750/v1/sandboxes"
    state = client.ask("POST", "/v1/sandboxes").json
    assert list(state) == list(printed[0])
    assert state["cwd"] == printed[0]["cwd"]
    words = shlex.split(run[0].removeprefix("$ "))
    target = words[2].removeprefix("http://127.0.0.1:8750").replace("sbx-5a0ed1a2…", state["id"])
    assert words[3:] == ["-H", "Content-Type: application/json", "-d", words[-1]]
    header = dict([words[4].split(": ")])
    answer = client.ask("POST", target, body=words[-1].encode(), headers=header).json
    assert list(answer) == list(printed[1])
    assert answer | {"execution_time_ms": 5.2} == printed[1]
