"""Invalid requests: the code and message of the answer; the server continues."""

from __future__ import annotations

import json
import random

import pytest

from tests.rpc.peer import Peer, peer
from wasmsand.rpc.methods import METHODS

UNREADABLE = [
    pytest.param(b"{", -32700, "Parse error: not JSON: ", id="half an object"),
    pytest.param(b"run", -32700, "Parse error: not JSON: ", id="no JSON at all"),
    pytest.param(b'{"a":1} {"b":2}', -32700, "Parse error: not JSON: Extra data", id="two"),
    pytest.param(b'{"id":"\xff"}', -32700, "Parse error: not UTF-8: byte 0xff at 7", id="utf8"),
    pytest.param(b'\xef\xbb\xbf{"id":1}', -32700, "Parse error: not JSON", id="byte order mark"),
    pytest.param(b'{"id":1}'.decode().encode("utf-16"), -32700, "Parse error: not U", id="utf16"),
    pytest.param(b"[" * 100_000, -32700, "Parse error: nested too deeply", id="deep"),
    pytest.param(b'{"id":NaN}', -32700, "Parse error: not JSON: NaN", id="NaN"),
    pytest.param(b'{"id":-Infinity}', -32700, "Parse error: not JSON: -Infinity", id="Infinity"),
    pytest.param(b'{"id":1e999}', -32700, "Parse error: a number is too large", id="1e999"),
    pytest.param(b'{"id":' + b"9" * 5000 + b"}", -32700, "Parse error: a number", id="digits"),
    pytest.param(b'{"id":"a\0b"}', -32700, "Parse error: not JSON: Invalid control", id="NUL"),
    pytest.param(b"[]", -32600, "Invalid Request: an empty batch", id="empty batch"),
    pytest.param(b"7", -32600, "Invalid Request: not an object", id="a number"),
    pytest.param(b"null", -32600, "Invalid Request: not an object", id="null"),
    pytest.param(b'"kill"', -32600, "Invalid Request: not an object", id="a string"),
]


@pytest.mark.parametrize(("line", "code", "message"), UNREADABLE)
def test_a_line_that_is_not_a_request_is_answered_without_id(
    shared: Peer, line: bytes, code: int, message: str
) -> None:
    response = shared.exchange(line)
    assert response["jsonrpc"] == "2.0"
    assert response["id"] is None
    assert response["error"]["code"] == code
    assert response["error"]["message"].startswith(message)
    assert shared.call("run", command="echo on")["stdout"] == "on\n"


ENVELOPES = [
    ({"id": 5, "method": "run"}, 5, -32600, 'Invalid Request: jsonrpc must be "2.0"'),
    (
        {"jsonrpc": "1.0", "id": 5, "method": "run"},
        5,
        -32600,
        'Invalid Request: jsonrpc must be "2.0"',
    ),
    (
        {"jsonrpc": 2.0, "id": 5, "method": "run"},
        5,
        -32600,
        'Invalid Request: jsonrpc must be "2.0"',
    ),
    ({"jsonrpc": "2.0", "id": 5}, 5, -32600, "Invalid Request: method must be a string"),
    (
        {"jsonrpc": "2.0", "id": "x", "method": 1},
        "x",
        -32600,
        "Invalid Request: method must be a string",
    ),
    (
        {"jsonrpc": "2.0", "id": 5, "method": "run", "params": "x"},
        5,
        -32600,
        "Invalid Request: params must be an object",
    ),
    (
        {"jsonrpc": "2.0", "id": 5, "method": "run", "params": None},
        5,
        -32600,
        "Invalid Request: params must be an object",
    ),
    (
        {"jsonrpc": "2.0", "id": 5, "method": "run", "params": ["echo"]},
        5,
        -32602,
        "Invalid params: params must be an object; they are passed by name",
    ),
    (
        {"jsonrpc": "2.0", "id": [1], "method": "run"},
        None,
        -32600,
        "Invalid Request: id must be a string, a number or null",
    ),
    (
        {"jsonrpc": "2.0", "id": True, "method": "run"},
        None,
        -32600,
        "Invalid Request: id must be a string, a number or null",
    ),
    ({"jsonrpc": "2.0", "id": 5, "method": "nope"}, 5, -32601, "Method not found: nope"),
    ({"jsonrpc": "2.0", "id": 5, "method": "__init__"}, 5, -32601, "Method not found: __init__"),
    ({"jsonrpc": "2.0", "id": 5, "method": ""}, 5, -32601, "Method not found: "),
    ({"jsonrpc": "2.0", "id": None, "method": "nope"}, None, -32601, "Method not found: nope"),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "nope"}, 1.5, -32601, "Method not found: nope"),
    ({"jsonrpc": "2.0", "id": "\ud800", "method": "\ud800"}, "\ud800", -32601, "Method not f"),
]


@pytest.mark.parametrize(("request_", "id_", "code", "message"), ENVELOPES)
def test_a_request_that_is_not_json_rpc_is_refused(
    shared: Peer, request_: object, id_: object, code: int, message: str
) -> None:
    response = shared.exchange(json.dumps(request_))
    assert response["id"] == id_
    assert (response["error"]["code"], response["error"]["message"][: len(message)]) == (
        code,
        message,
    )


PARAMS: list[tuple[str, dict[str, object], str]] = [
    ("run", {}, "command is missing"),
    ("run", {"command": None}, "command must be a string, not null"),
    ("run", {"command": 7}, "command must be a string, not the number 7"),
    ("run", {"command": ["echo"]}, "command must be a string, not an array"),
    ("run", {"command": "a\0b"}, "command must not contain a NUL character"),
    ("run", {"command": "\ud800"}, "command must be encodable as UTF-8"),
    ("run", {"command": "true", "timeoutMs": 0}, "timeout_ms must be a positive number"),
    ("run", {"command": "true", "timeoutMs": "5"}, "timeoutMs must be a number, not a string"),
    ("run", {"command": "true", "timeoutMs": True}, "timeoutMs must be a number, not a boolean"),
    ("run", {"command": "true", "env": {"A": 1}}, "env.A must be a string, not the number 1"),
    ("run", {"command": "true", "env": []}, "env must be an object of strings, not an array"),
    ("run", {"command": "true", "env": {"A=B": "1"}}, "name must be non-empty and without '='"),
    ("run", {"command": "true", "stdin": "%"}, "stdin must be base64: "),
    ("run", {"command": "true", "tty": True}, "unknown parameter 'tty' (known: "),
    ("files.write", {"path": "/tmp/a"}, "data is missing"),
    ("files.write", {"data": ""}, "path is missing"),
    ("files.write", {"path": "/tmp/a", "data": "a"}, "data must be base64: "),
    ("files.write", {"path": "/tmp/a", "data": "aGk"}, "data must be base64: "),
    ("files.write", {"path": "/tmp/a", "data": "aGk=\n"}, "data must be base64: "),
    ("files.write", {"path": "/tmp/a", "data": "é"}, "data must be base64: "),
    ("files.write", {"path": "/tmp/a", "data": {}}, "data must be a string, not an object"),
    ("files.write", {"path": 5, "data": ""}, "path must be a string, not the number 5"),
    ("files.read", {"path": ""}, "path must not be empty"),
    ("files.read", {"path": "/a\0b"}, "path must not contain a NUL character"),
    ("files.list", {}, "path is missing"),
    ("files.mkdir", {"path": []}, "path must be a string, not an array"),
    ("files.rm", {"path": "/tmp/x", "recursive": 1}, "recursive must be true or false, not the n"),
    ("files.stat", {"path": None}, "path must be a string, not null"),
    ("env.set", {"name": "A"}, "value is missing"),
    ("env.set", {"name": "A", "value": None}, "value must be a string, not null"),
    ("env.set", {"name": "", "value": ""}, "name must be non-empty"),
    ("env.set", {"name": "A=B", "value": ""}, "name must be non-empty and without '='"),
    ("env.get", {"name": 1}, "name must be a string, not the number 1"),
    ("kill", {"now": True}, "unknown parameter 'now' (known: none)"),
]


@pytest.mark.parametrize(("method", "params", "message"), PARAMS)
def test_wrong_params_are_refused(
    shared: Peer, method: str, params: dict[str, object], message: str
) -> None:
    error = shared.error(method, **params)
    assert error["code"] == -32602
    expected = f"Invalid params: {message}"
    assert error["message"][: len(expected)] == expected


REFUSED = [
    ("files.read", {"path": "/nowhere"}, "ENOENT"),
    ("files.read", {"path": "/tmp"}, "EISDIR"),
    ("files.read", {"path": "/etc/passwd/x"}, "ENOTDIR"),
    ("files.read", {"path": "/" + "a" * 300}, "ENAMETOOLONG"),
    ("files.read", {"path": "/../../../nowhere"}, "ENOENT"),
    ("files.list", {"path": "/etc/passwd"}, "ENOTDIR"),
    ("files.mkdir", {"path": "/tmp"}, "EEXIST"),
    ("files.rm", {"path": "/nowhere"}, "ENOENT"),
    ("files.rm", {"path": "/etc"}, "ENOTEMPTY"),
    ("files.write", {"path": "/tmp", "data": ""}, "EISDIR"),
    ("run", {"command": "true", "cwd": "/nowhere"}, "ENOENT"),
    ("run", {"command": "x" * 3_000_000}, "E2BIG"),
]


@pytest.mark.parametrize(("method", "params", "errno"), REFUSED)
def test_an_error_of_the_sandbox_has_code_1_and_an_errno(
    shared: Peer, method: str, params: dict[str, object], errno: str
) -> None:
    error = shared.error(method, **params)
    assert error["code"] == 1
    assert error["message"].startswith(f"{errno}: ")
    assert error["data"]["errno"] == errno


CREATE: list[tuple[dict[str, object], str]] = [
    ({"wasmDir": 1}, "wasmDir must be a string, not the number 1"),
    ({"wasmDir": ""}, "wasm_dir must be a non-empty path without NUL characters"),
    ({"wasmDir": None, "timeoutMs": -1}, "timeout_ms must be a positive number of milliseconds"),
    ({"wasmDir": None, "fsLimitBytes": 0}, "fs_limit_bytes must be positive, not 0"),
    ({"wasmDir": None, "fsLimitBytes": 1.5}, "fsLimitBytes must be a whole number, not the n"),
    ({"wasmDir": None, "fsLimitBytes": "1"}, "fsLimitBytes must be a number, not a string"),
    ({"wasmDir": None, "timeout": 1}, "unknown parameter 'timeout' (known: wasm"),
]


def test_create_with_wrong_params_creates_nothing(bare: Peer) -> None:
    for params, message in CREATE:
        error = bare.error("create", **params)
        assert error["code"] == -32602
        expected = f"Invalid params: {message}"
        assert error["message"][: len(expected)] == expected
    error = bare.error("create", wasmDir="/nowhere/at/all")
    assert error["code"] == 1
    assert error["message"].startswith("ENOENT: /nowhere/at/all: ")
    bare.create(fsLimitBytes=1e9)


def test_every_call_before_create_says_what_to_do(bare: Peer) -> None:
    for method, params in [
        ("run", {"command": "true"}),
        ("files.read", {"path": "/a"}),
        ("files.write", {"path": "/a", "data": ""}),
        ("files.list", {"path": "/"}),
        ("env.get", {"name": "A"}),
        ("env.set", {"name": "A", "value": ""}),
    ]:
        error = bare.error(method, **params)
        assert (error["code"], error["message"]) == (
            1,
            "ENODEV: no sandbox yet; call create first",
        )


def test_a_second_create_is_refused(server: Peer) -> None:
    error = server.error("create", wasmDir=None)
    assert error["code"] == 1
    assert error["message"].startswith("EEXIST: the sandbox exists already")
    assert server.call("run", command="echo on")["stdout"] == "on\n"


def test_a_line_over_the_limit_is_refused_and_skipped() -> None:
    with peer("--max-line-bytes", "1000") as server:
        server.create()
        for length in (1001, 5000, 3_000_000):
            response = server.exchange(b"x" * length)
            assert response["id"] is None
            assert response["error"] == {
                "code": -32600,
                "message": "Invalid Request: a line is longer than 1000 bytes; "
                "raise --max-line-bytes",
            }
        assert server.exchange(b"x" * 1000)["error"]["code"] == -32700
        assert server.call("run", command="echo on")["stdout"] == "on\n"


def test_empty_lines_are_ignored(server: Peer) -> None:
    server.send("\n  \n\r")
    assert server.call("run", command="echo on")["stdout"] == "on\n"


def test_unknown_members_of_a_request_are_ignored(server: Peer) -> None:
    response = server.exchange(
        '{"jsonrpc":"2.0","id":1,"method":"env.get","params":{"name":"HOME"},"trace":"x"}'
    )
    assert response["result"] == {"value": "/home/user"}


def test_random_requests_are_all_answered(shared: Peer) -> None:
    chance = random.Random(2000)
    # No `run`, whose command could be anything, and nothing that ends the server.
    methods = [name for name in METHODS if name not in ("run", "kill", "commands.run", "create")]
    strange: list[object] = [
        None,
        True,
        -1,
        1e300,
        2**70,
        "",
        "/tmp/x",
        "\0",
        "\ud800",
        [],
        {},
        [1],
    ]
    for number in range(400):
        method = METHODS[chance.choice(methods)]
        names = [*method.required, *method.optional, "unknown"]
        params = {name: chance.choice(strange) for name in names if chance.random() < 0.8}
        request = {"jsonrpc": "2.0", "id": number, "method": method.name, "params": params}
        response = shared.exchange(json.dumps(request))
        assert response["id"] == number
        assert response.get("error", {}).get("code") in (None, 1, -32602), (request, response)
    assert shared.call("run", command="echo on")["stdout"] == "on\n"
