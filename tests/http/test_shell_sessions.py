"""Shell sessions over HTTP, and interrupts of sessions."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("msgspec", reason="pip install 'wasmsand[serve]'")

from tests.http.server import Client, serving


@pytest.fixture(scope="module")
def client() -> object:
    with serving() as server:
        yield Client(server.url)


def opened(client: Client, kind: str) -> tuple[str, str]:
    sandbox = client.create()
    answer = client.ask("POST", f"{sandbox}/{kind}", {})
    assert answer.status == 201
    return sandbox, f"{sandbox}/{kind}/{answer.json['id']}"


def test_a_shell_keeps_its_state(client: Client) -> None:
    sandbox, shell = opened(client, "shells")
    client.ask("POST", f"{shell}/run", {"command": "cd /usr; name=world; f() { echo $1 $name; }"})
    answer = client.ask(
        "POST", f"{shell}/run", {"command": "f hello; pwd; cat; exit 3", "stdin": "in"}
    )
    assert {**answer.json, "execution_time_ms": 0} == {
        "exit_code": 3,
        "timed_out": False,
        "execution_time_ms": 0,
        "notices": [],
        "truncated": False,
        "stdout": "hello world\n/usr\nin",
        "stderr": "",
    }
    assert client.ask("POST", f"{shell}/run", {"command": "true"}).status == 422  # it has ended
    assert client.ask("GET", f"{sandbox}/sessions").json["sessions"] == []


def test_a_shell_streams_its_output(client: Client) -> None:
    _, shell = opened(client, "shells")
    answer = client.ask(
        "POST",
        f"{shell}/run",
        {"command": "echo one; echo two >&2; false"},
        headers={"Accept": "text/event-stream"},
    )
    events = answer.body.decode()
    assert 'event: output\ndata: {"fd":1,"text":"one\\n"}' in events
    assert '{"fd":2,"text":"two\\n"}' in events
    assert 'event: end\ndata: {"exit_code":1,"timed_out":false' in events


@pytest.mark.parametrize(
    ("kind", "code", "then"),
    [
        ("shells", {"command": "x=5; sleep 100"}, {"command": "echo $x"}),
        ("python", {"code": "x = 5\nimport time\ntime.sleep(100)"}, {"code": "print(x)"}),
    ],
)
def test_an_interrupt_ends_what_runs_and_not_the_session(
    client: Client, kind: str, code: dict[str, str], then: dict[str, str]
) -> None:
    _, session = opened(client, kind)
    began = time.monotonic()
    runner = threading.Thread(
        target=client.ask, args=("POST", f"{session}/run", {**code, "timeout_ms": 60_000})
    )
    runner.start()
    time.sleep(1)
    busy = client.ask("POST", f"{session}/run", then)
    assert busy.error[:2] == (409, "session_busy")
    assert client.ask("POST", f"{session}/interrupt").json == {"ok": True}
    runner.join()
    assert time.monotonic() - began < 50
    assert client.ask("POST", f"{session}/run", then).json["stdout"] == "5\n"
    assert client.ask("POST", f"{session}/interrupt").json == {"ok": True}  # nothing runs
    assert client.ask("DELETE", session).json == {"ok": True}
    assert client.ask("DELETE", session).error[:2] == (404, "session_not_found")


def test_shells_are_bounded_and_their_ids_are_checked(client: Client) -> None:
    sandbox, shell = opened(client, "shells")
    for _ in range(15):
        assert client.ask("POST", f"{sandbox}/shells", {}).status == 201
    refused = client.ask("POST", f"{sandbox}/shells", {})
    assert refused.error[:2] == (429, "too_many_sessions")
    identity = shell.rpartition("/")[2]
    for wrong in (f"{sandbox}/python/{identity}", f"{sandbox}/shells/sh-0", f"{sandbox}/shells/*"):
        answer = client.ask("POST", f"{wrong}/interrupt")
        assert answer.error[:2] == (404, "session_not_found")
    for bad in ({}, {"command": 1}, {"command": "true", "stdin": "a", "stdin_base64": "YQ=="}):
        assert client.ask("POST", f"{shell}/run", bad).status == 400
