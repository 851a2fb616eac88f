"""Only valid JSON is accepted: all bytes give either a value or `BadJson`."""

from __future__ import annotations

import json
import random

import pytest

from wasmsand.wire import strict_json
from wasmsand.wire.strict_json import BadJson


@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 1.5, 10**30, "é\u2028\ud800\0", [], {}, {"a": [1, {"b": ""}]}]
)
def test_what_is_encoded_is_one_line_of_ascii_and_decodes_to_the_same(value: object) -> None:
    line = strict_json.encode(value)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert strict_json.decode(line) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_json_lacks_are_not_encoded(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.encode(value)


@pytest.mark.parametrize("seed", range(300))
def test_broken_lines_are_refused_in_one_way(seed: int) -> None:
    chance = random.Random(seed)
    line = bytearray(b'{"jsonrpc":"2.0","id":[1.5e3,-2,"\\u00e9\\ud83d\xc3\xa9"],"a":null}')
    for _ in range(chance.randrange(1, 6)):
        position = chance.randrange(len(line))
        match chance.randrange(4):
            case 0:
                line[position] = chance.randrange(256)
            case 1:
                del line[position : position + chance.randrange(1, 9)]
            case 2:
                line[position:position] = chance.choice((b"[", b"{", b"9", b"\xff", b"NaN", b'"'))
            case _:
                line[position:position] = line[: chance.randrange(20)]
        if not line:
            break
    try:
        value = strict_json.decode(bytes(line))
    except BadJson:
        return
    assert json.loads(line.decode()) == value


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_nesting_of_any_depth_does_no_harm(opening: bytes) -> None:
    for depth in (100_000, 1_000_000):
        with pytest.raises(BadJson):
            strict_json.decode(opening * depth)


LONG = " " * (1 << 18)
"""Put before a value, so that it is decoded as a long one."""


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1.5,
        "ä€😀\udcff\n",
        [],
        {},
        {"a": [1, "b", {"c": None}], "": [[[]], {}], "long": 'x\\"' * 1000},
        list(range(1000)),
    ],
)
def test_long_lines_decode_to_the_same(value: object) -> None:
    line = LONG.encode() + strict_json.encode(value)
    assert strict_json.decode(line) == value
    assert strict_json.decode(line, most_values=100_000) == value


@pytest.mark.parametrize(
    "text",
    ["NaN", "[1e999]", "[1,]", "{1:2}", '{"a" 1}', '"a', "[" * 100_000, '{"a":' * 5000, "1 2", "01",
     "9" * 5000],
)  # fmt: skip
def test_long_lines_that_are_broken_are_refused_as_short_ones(text: str) -> None:
    messages = []
    for line in (text.encode(), LONG.encode() + text.encode()):
        with pytest.raises(BadJson) as caught:
            strict_json.decode(line)
        messages.append(str(caught.value).partition(" at ")[0])
    assert messages[0] == messages[1]


def test_a_long_line_of_too_many_values_is_refused() -> None:
    for text in ("[" + "1," * 300_000 + "1]", '{"a":[' + '{"b":"c"},' * 50_000 + "1]}"):
        with pytest.raises(BadJson, match="more than 50000 values"):
            strict_json.decode(text.encode(), most_values=50_000)
