"""`PythonResult.value`: which values leave the sandbox, on every interface."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.sdk.python_values import NoValue, fits_json, typed_value


@pytest.mark.parametrize(
    "value",
    [
        (),
        (1, "a", None, 2.5),
        [(1, 2), [3]],
        {1: "one", 2: "two"},
        {(1, 2): {"x": (3,)}, None: True},
        {1, 2, 3},
        {frozenset({1}), frozenset()},
        b"\0\xff",
        bytearray(b"abc"),
        complex(1, -2),
        {"dict": 1},
        {"tuple": [1]},
        [{"tuple": (1,)}],
        10**300,
        math.inf,
        "a\ud800b",
        [True, False],
    ],
    ids=repr,
)
def test_values_of_built_in_types_come_back_as_they_are(sandbox: Sandbox, value: object) -> None:
    with sandbox.python() as session:
        result = session.run(repr(value).replace("inf", "float('inf')"))
    assert result.has_value
    assert result.value == value
    assert type(result.value) is type(value)
    assert result.repr == repr(value)


def test_nan_is_a_value(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        result = session.run("(float('nan'), 1)")
    assert result.has_value
    assert math.isnan(result.value[0])


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("None", None),
        ("x = 1", None),
        ("len", "<built-in function len>"),
        ("range(3)", "range(0, 3)"),
        ("[1, object]", "[1, <class 'object'>]"),
        ("(1, 2.5, len)", "(1, 2.5, <built-in function len>)"),
        ("import fractions; fractions.Fraction(1, 2)", "Fraction(1, 2)"),
        ("import collections; collections.namedtuple('P', 'x')(1)", "P(x=1)"),
        ("a = (1,); b = [a]; b.append(b); b", "[(1,), [...]]"),
    ],
)
def test_without_a_value_only_repr_describes_it(
    sandbox: Sandbox, code: str, shown: str | None
) -> None:
    with sandbox.python() as session:
        result = session.run(code)
    assert result.error is None
    assert (result.has_value, result.value, result.repr) == (False, None, shown)


def test_sets_and_other_keys_are_limited_in_number(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        assert session.run("set(range(4096))").value == set(range(4096))
        assert not session.run("set(range(4097))").has_value
        assert not session.run("{number: 1 for number in range(4097)}").has_value
        assert session.run("tuple(range(50000))").value == tuple(range(50000))


def test_a_value_that_is_too_long_is_none(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        result = session.run("b'a' * 2_000_000")
        assert (result.has_value, result.value) == (False, None)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{}",
        '{"tuple": 1}',
        '{"tuple": [], "set": []}',
        '{"set": [[]]}',
        '{"dict": [[1]]}',
        '{"dict": {"a": 1}}',
        '{"bytes": "not base64"}',
        '{"bytes": [1]}',
        '{"complex": [1]}',
        '{"complex": [true, 1]}',
        '{"object": []}',
        '{"__import__": ["os"]}',
        "[" * 100_000,
        '{"tuple": [' * 60 + "]}" * 60,
        '{"set": ' + json.dumps(list(range(5000))) + "}",
    ],
    ids=lambda text: str(text)[:30],
)
def test_anything_else_is_no_value(written: str) -> None:
    with pytest.raises(NoValue):
        typed_value(written)


def test_colliding_hashes_take_no_time() -> None:
    colliding = [number * (2**61 - 1) for number in range(4096)]
    began = time.monotonic()
    assert len(typed_value(json.dumps({"set": colliding}))) == 4096
    assert time.monotonic() - began < 5


def _nested(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, {"a": None}], True),
        ((1,), False),
        ([(1,)], False),
        ({1: 2}, False),
        (math.nan, False),
        ([math.inf], False),
        (b"", False),
        (10**5000, False),
        (_nested(100_000), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_represents_without_a_change(value: Any, expected: bool) -> None:
    assert fits_json(value) is expected


def test_an_error_found_after_parsing_shows_the_line(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        error = session.run("x = 1\nreturn x").error
    assert error is not None
    assert error.traceback == (
        '  File "<run 1>", line 2\n    return x\n    ^^^^^^^^\n'
        "SyntaxError: 'return' outside function\n"
    )


def test_a_syntax_error_shows_only_the_users_code(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        error = session.run("x = 1\nfor y in x\n    pass").error
    assert error is not None
    assert error.type == "SyntaxError"
    assert error.traceback == (
        "  File \"<run 1>\", line 2\n    for y in x\n              ^\nSyntaxError: expected ':'\n"
    )
