"""What a client is told when a line is no good request; and that the process goes on."""

from __future__ import annotations

import random

import pytest

from tests.line.peer import Peer

SHELL = {"stdout": "", "stderr": "", "exit_code": None, "timed_out": False}

BAD: list[tuple[bytes, dict[str, object], str]] = [
    (b"", {}, ""),
    (b"{", {"type": None, "id": None}, "Invalid request: not JSON: "),
    (b"ls", {"type": None, "id": None}, "Invalid request: not JSON: "),
    (b'{"type":"\xff"}', {"type": None, "id": None}, "Invalid request: not UTF-8: byte 0xff at 9"),
    (b"[1]", {"type": None, "id": None}, "Invalid request: not a JSON object"),
    (b"null", {"type": None, "id": None}, "Invalid request: not a JSON object"),
    (b"[" * 99_999, {"type": None, "id": None}, "Invalid request: nested too deeply"),
    (b'{"id":NaN}', {"type": None, "id": None}, "Invalid request: not JSON: NaN"),
    (b"{}", {"type": None, "id": None}, "Invalid request: id is missing"),
    (b'{"id":"1"}', {"type": None, "id": "1"}, "Invalid request: type is missing"),
    (b'{"id":"1","type":7}', {"type": None, "id": "1"}, "Invalid request: type must be a string"),
    (
        b'{"id":"1","type":"exec"}',
        {"type": "exec", "id": "1"},
        "Invalid request: unknown type 'exec'",
    ),
    (b'{"type":"status"}', {"type": "status", "id": None}, "Invalid request: id is missing"),
    (
        b'{"type":"reset","id":1}',
        {"type": "reset", "id": None, "success": False},
        "Invalid request: id must be a string, not a number",
    ),
    (
        b'{"type":"shell","id":"1"}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: command is missing",
    ),
    (
        b'{"type":"shell","id":"1","command":["ls"]}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: command must be a string, not an array",
    ),
    (
        b'{"type":"shell","id":"1","command":"a\\u0000b"}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: command must not contain a NUL character",
    ),
    (
        b'{"type":"shell","id":"1","command":"\\ud800"}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: command must be encodable as UTF-8",
    ),
    (
        b'{"type":"shell","id":"1","command":"ls","time_limit_ms":"5"}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: time_limit_ms must be a number, not an object"[:48],
    ),
    (
        b'{"type":"shell","id":"1","command":"ls","time_limit_ms":0}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: time_limit_ms must be positive, not 0",
    ),
    (
        b'{"type":"shell","id":"1","command":"ls","time_limit_ms":true}',
        {"type": "shell", "id": "1", **SHELL},
        "Invalid request: time_limit_ms must be a number, not a boolean",
    ),
    (
        b'{"type":"shell","id":"1","command":"' + b"x" * 3_000_000 + b'"}',
        {"type": "shell", "id": "1", **SHELL},
        "Command execution failed: E2BIG: ",
    ),
    (
        b'{"type":"write_file","id":"1","content":"x"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: path is missing",
    ),
    (
        b'{"type":"write_file","id":"1","path":"","content":"x"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: path must not be empty",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: content is missing",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"%","encoding":"base64"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: content must be base64: ",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"\\udc00"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: content must be encodable as UTF-8",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"","encoding":"hex"}',
        {"type": "write_file", "id": "1", "success": False},
        'Invalid request: encoding must be "text" or "base64", not \'hex\'',
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"","mode":"rw"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: mode must be octal, as \"0644\", and not 'rw'",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"","mode":"0888"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: mode must be octal",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"","mode":"10000"}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: mode must be octal",
    ),
    (
        b'{"type":"write_file","id":"1","path":"/tmp/a","content":"","mode":420}',
        {"type": "write_file", "id": "1", "success": False},
        "Invalid request: mode must be a string, not a number",
    ),
    (
        b'{"type":"read_file","id":"1","path":"/a\\u0000"}',
        {"type": "read_file", "id": "1", "content": None, "success": False},
        "Invalid request: path must not contain a NUL character",
    ),
    (
        b'{"type":"read_file","id":"1","path":"/../../../../nowhere"}',
        {"type": "read_file", "id": "1", "content": None, "success": False},
        "ENOENT: ",
    ),
    (
        b'{"type":"read_file","id":"1","path":"/' + b"a" * 300 + b'"}',
        {"type": "read_file", "id": "1", "content": None, "success": False},
        "ENAMETOOLONG: ",
    ),
]


@pytest.mark.parametrize(("line", "answer", "error"), BAD[1:], ids=range(1, len(BAD)))
def test_a_bad_request_is_answered_in_its_shape(
    shared: Peer, line: bytes, answer: dict[str, object], error: str
) -> None:
    told = shared.ask(line)
    message = told.pop("error")
    assert told == answer
    assert message[: len(error)] == error
    assert shared.shell("echo on", time_limit_ms=30_000)["stdout"] == "on\n"


def test_fields_that_nobody_knows_and_empty_lines_are_ignored(shared: Peer) -> None:
    shared.send("\n \r\n")
    assert shared.shell("echo on", path=None, trace=["x"])["stdout"] == "on\n"


def test_random_lines_are_all_answered(shared: Peer) -> None:
    chance = random.Random(2002)
    line = b'{"type":"read_file","id":"x","path":"/nowhere","encoding":"text"}'
    for _ in range(300):
        broken = bytearray(line)
        for _ in range(chance.randrange(1, 5)):
            broken[chance.randrange(len(broken))] = chance.choice(b'\0 "[]{}:,9x\\\x80\xff')
        answer = shared.ask(bytes(broken))
        assert answer["error"]
    assert shared.shell("echo on")["stdout"] == "on\n"
