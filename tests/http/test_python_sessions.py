"""Python sessions over HTTP, as a client in another language uses them."""

from __future__ import annotations

import base64
import threading
import time
from typing import Any

import pytest

from tests.http.server import Client, events
from wasmsand.machine import image_programs

pytestmark = pytest.mark.skipif(
    not any(program.name == "python" for program in image_programs()),
    reason="the image was built without Python",
)
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def python(client: Client, sandbox: str) -> str:
    """The path of an open session."""
    opened = client.ask("POST", f"{sandbox}/python", {})
    assert opened.status == 201
    assert opened.json["pid"] > 0
    return f"{sandbox}/python/{opened.json['id']}"


def test_code_keeps_its_state_and_returns_everything(client: Client, python: str) -> None:
    first = client.ask("POST", f"{python}/run", {"code": "import math\nx = 20"}).json
    assert first.pop("execution_time_ms") > 0
    assert first == {
        "value": None,
        "has_value": False,
        "repr": None,
        "error": None,
        "timed_out": False,
        "truncated": False,
        "stdout": "",
        "stderr": "",
        "results": [],
    }
    forms = "{'image/png': b'\\xff\\x00', 'application/json': [1]}"
    code = f"print('é')\ndisplay({forms}, raw=True)\nx + 1"
    second = client.ask("POST", f"{python}/run", {"code": code}).json
    assert (second["stdout"], second["value"], second["repr"]) == ("é\n", 21, "21")
    shown, main = second["results"]
    png = base64.b64encode(b"\xff\x00").decode()
    assert shown["data"] == {"image/png": png, "application/json": [1]}
    assert (main["data"], main["is_main"]) == ({"text/plain": "21"}, True)
    failed = client.ask("POST", f"{python}/run", {"code": "math.inf; 1 / 0"}).json
    assert failed["error"]["type"] == "ZeroDivisionError"
    infinite = client.ask("POST", f"{python}/run", {"code": "math.inf"}).json
    assert (infinite["value"], infinite["has_value"], infinite["repr"]) == (None, False, "inf")
    pair = client.ask("POST", f"{python}/run", {"code": "(1, 2)"}).json
    assert (pair["value"], pair["has_value"], pair["repr"]) == (None, False, "(1, 2)")
    plain = client.ask("POST", f"{python}/run", {"code": "[None]"}).json
    assert (plain["value"], plain["has_value"]) == ([None], True)


def test_input_comes_with_the_request(client: Client, python: str) -> None:
    body = {"code": "[input(), input('? ')]", "inputs": ["one", "two"]}
    assert client.ask("POST", f"{python}/run", body).json["value"] == ["one", "two"]
    failed = client.ask("POST", f"{python}/run", {"code": "input()"}).json
    assert failed["error"]["type"] == "EOFError"


def test_a_session_has_standard_input(client: Client, sandbox: str) -> None:
    opened = client.ask("POST", f"{sandbox}/python", {"stdin": "é\n"}).json
    path = f"{sandbox}/python/{opened['id']}/run"
    assert client.ask("POST", path, {"code": "input()"}).json["value"] == "é"


def test_output_and_results_are_streamed(client: Client, python: str) -> None:
    code = "import sys\nprint('a')\ndisplay(1)\nprint('b', file=sys.stderr)\n2"
    answer = client.ask("POST", f"{python}/run", {"code": code}, headers=STREAM)
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = events(answer.body)
    assert [name for name, _ in found] == ["output", "result", "output", "result", "end"]
    assert found[0][1] == {"fd": 1, "text": "a\n"}
    assert found[1][1]["data"] == {"text/plain": "1"}
    assert found[2][1] == {"fd": 2, "text": "b\n"}
    assert found[3][1]["is_main"] is True
    assert (found[4][1]["value"], found[4][1]["error"]) == (2, None)


def test_a_timeout_leaves_the_session(client: Client, python: str) -> None:
    client.ask("POST", f"{python}/run", {"code": "x = 1"})
    body = {"code": "while True: pass", "timeout_ms": 300}
    answer = client.ask("POST", f"{python}/run", body).json
    assert (answer["timed_out"], answer["error"]["type"]) == (True, "KeyboardInterrupt")
    assert client.ask("POST", f"{python}/run", {"code": "x"}).json["value"] == 1


def test_one_request_at_a_time(client: Client, sandbox: str, python: str) -> None:
    code = (
        "import os, time\nopen('begun', 'w').close()\n"
        "while not os.path.exists('go on'): time.sleep(0.01)\n'done'"
    )
    answers: list[Any] = []
    slow = threading.Thread(
        target=lambda: answers.append(client.ask("POST", f"{python}/run", {"code": code}))
    )
    slow.start()
    deadline = time.monotonic() + 20
    while client.ask("GET", f"{sandbox}/files/stat?path=begun").status != 200:
        assert time.monotonic() < deadline
    refused = client.ask("POST", f"{python}/run", {"code": "1"})
    client.ask("PUT", f"{sandbox}/files?path=go%20on", body=b"")
    slow.join()
    assert refused.error[:2] == (409, "session_busy")
    assert answers[0].json["value"] == "done"
    assert client.ask("POST", f"{python}/run", {"code": "1"}).json["value"] == 1


def test_closed_and_unknown_sessions(client: Client, sandbox: str, python: str) -> None:
    assert client.ask("DELETE", python).json == {"ok": True}
    assert client.ask("POST", f"{python}/run", {"code": "1"}).error[:2] == (
        404,
        "session_not_found",
    )
    assert client.ask("DELETE", f"{sandbox}/python/py-0").error[:2] == (404, "session_not_found")


def test_an_interpreter_that_ends_makes_room(client: Client) -> None:
    sandbox = client.create()
    path = f"{sandbox}/python"
    opened = [client.ask("POST", path, {}) for _ in range(16)]
    assert {answer.status for answer in opened} == {201}
    assert client.ask("POST", path, {}).error[:2] == (429, "too_many_sessions")
    ended = f"{path}/{opened[0].json['id']}/run"
    answer = client.ask("POST", ended, {"code": "import os; os._exit(3)"}).json
    assert answer["error"]["type"] == "InterpreterEnded"
    assert client.ask("POST", path, {"cwd": "/tmp", "env": {"A": "b"}}).status == 201
    client.ask("DELETE", sandbox)


@pytest.mark.parametrize(
    "body",
    [{}, {"code": 5}, {"code": "1", "inputs": "x"}, {"code": "\0"}, {"code": "1", "x": 1}],
)
def test_invalid_requests_are_refused(client: Client, python: str, body: object) -> None:
    assert client.ask("POST", f"{python}/run", body).error[:2] == (400, "invalid_value")
    assert client.ask("POST", f"{python}/run", {"code": "7"}).json["value"] == 7
