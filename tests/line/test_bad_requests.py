"""Lines that are not valid requests: the answers to them; the process continues."""

from __future__ import annotations

import random

import pytest

from tests.line.peer import Peer

NO_TYPE: dict[str, object] = {"type": None, "id": None}
SHELL: dict[str, object] = {"stdout": "", "stderr": "", "exit_code": None, "timed_out": False}
WRITE: dict[str, object] = {"success": False}
READ: dict[str, object] = {"content": None, "success": False}
MALFORMED: list[tuple[bytes, dict[str, object], str]] = [
    (b"{", NO_TYPE, "Invalid request: not JSON: "),
    (b"ls", NO_TYPE, "Invalid request: not JSON: "),
    (b'{"type":"\xff"}', NO_TYPE, "Invalid request: not UTF-8: byte 0xff at 9"),
    (b"[1]", NO_TYPE, "Invalid request: not a JSON object"),
    (b"null", NO_TYPE, "Invalid request: not a JSON object"),
    (b"[" * 99_999, NO_TYPE, "Invalid request: nested too deeply"),
    (b'{"id":NaN}', NO_TYPE, "Invalid request: not JSON: NaN"),
    (b"{}", NO_TYPE, "Invalid request: id is missing"),
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
]
BAD_FIELDS: list[tuple[str, dict[str, object], list[tuple[bytes, str]]]] = [
    (
        "shell",
        SHELL,
        [
            (b"", "Invalid request: command is missing"),
            (b'"command":["ls"]', "Invalid request: command must be a string, not an array"),
            (
                b'"command":"a\\u0000b"',
                "Invalid request: command must not contain a NUL character",
            ),
            (b'"command":"\\ud800"', "Invalid request: command must be encodable as UTF-8"),
            (
                b'"command":"ls","time_limit_ms":"5"',
                "Invalid request: time_limit_ms must be a number, not a string",
            ),
            (
                b'"command":"ls","time_limit_ms":0',
                "Invalid request: time_limit_ms must be positive, not 0",
            ),
            (
                b'"command":"ls","time_limit_ms":true',
                "Invalid request: time_limit_ms must be a number, not a boolean",
            ),
            (b'"command":"' + b"x" * 3_000_000 + b'"', "Command execution failed: E2BIG: "),
        ],
    ),
    (
        "write_file",
        WRITE,
        [
            (b'"content":"x"', "Invalid request: path is missing"),
            (b'"path":"","content":"x"', "Invalid request: path must not be empty"),
            (b'"path":"/tmp/a"', "Invalid request: content is missing"),
            (
                b'"path":"/tmp/a","content":"%","encoding":"base64"',
                "Invalid request: content must be base64: ",
            ),
            (
                b'"path":"/tmp/a","content":"\\udc00"',
                "Invalid request: content must be encodable as UTF-8",
            ),
            (
                b'"path":"/tmp/a","content":"","encoding":"hex"',
                'Invalid request: encoding must be "text" or "base64", not \'hex\'',
            ),
            (
                b'"path":"/tmp/a","content":"","mode":"rw"',
                "Invalid request: mode must be octal, such as \"0644\", not 'rw'",
            ),
            (
                b'"path":"/tmp/a","content":"","mode":"0888"',
                "Invalid request: mode must be octal",
            ),
            (
                b'"path":"/tmp/a","content":"","mode":"10000"',
                "Invalid request: mode must be octal",
            ),
            (
                b'"path":"/tmp/a","content":"","mode":420',
                "Invalid request: mode must be a string, not a number",
            ),
        ],
    ),
    (
        "read_file",
        READ,
        [
            (b'"path":"/a\\u0000"', "Invalid request: path must not contain a NUL character"),
            (b'"path":"/../../../../nowhere"', "ENOENT: "),
            (b'"path":"/' + b"a" * 300 + b'"', "ENAMETOOLONG: "),
        ],
    ),
]


def with_fields(kind: str, fields: bytes) -> bytes:
    """A request of this type, with the ID 1 and these fields."""
    head = f'{{"type":"{kind}","id":"1"'.encode()
    return head + (b"," + fields if fields else b"") + b"}"


BAD = [
    *MALFORMED,
    *(
        (with_fields(kind, fields), {"type": kind, "id": "1", **answer}, error)
        for kind, answer, cases in BAD_FIELDS
        for fields, error in cases
    ),
]


@pytest.mark.parametrize(("line", "answer", "error"), BAD, ids=range(len(BAD)))
def test_a_bad_request_is_answered_in_its_shape(
    shared: Peer, line: bytes, answer: dict[str, object], error: str
) -> None:
    told = shared.ask(line)
    message = told.pop("error")
    assert told == answer
    assert message[: len(error)] == error
    assert shared.shell("echo on")["stdout"] == "on\n"


def test_unknown_fields_and_empty_lines_are_ignored(shared: Peer) -> None:
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
