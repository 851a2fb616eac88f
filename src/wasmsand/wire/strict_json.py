"""JSON as RFC 8259 has it, and nothing beyond.

Owns the one way in which bytes of a peer become values. Rules: a line that is not UTF-8, not
JSON, nested too deeply or with a number that JSON does not have (NaN, 1e999) is `BadJson`,
whose message says what is wrong; what is encoded is one line of ASCII, so that neither a
locale nor a file name that is not UTF-8 can break it. A long line is decoded value by value, so
that other threads of a server can run meanwhile: the fast decoder lets none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from json.decoder import JSONArray, JSONDecoder, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from types import NoneType
from typing import Any, Final, NoReturn

_LONG_LINE: Final = 256 * 1024
"""From so many bytes on it matters that other threads can run."""

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (NoneType, "null"),
    (bool, "a boolean"),  # which is also an int
    ((int, float), "a number"),
    (str, "a string"),
    ((list, tuple), "an array"),
    (Mapping, "an object"),
)


def kind_of(value: object) -> str:
    """JSON's word for the type of `value`, for messages."""
    for types, word in _KINDS:
        if isinstance(value, types):
            return word
    return type(value).__name__


class BadJson(ValueError):
    """A line that is not JSON. The message says why, in words for the peer."""


def decode(line: bytes, most_values: int | None = None) -> object:
    """The value that `line` holds. `most_values`: how many a long one may have in all its lists
    and objects."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"not UTF-8: byte {line[error.start]:#04x} at {error.start}") from None
    try:
        if len(line) < _LONG_LINE:
            return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        return _patient_decoder(most_values).decode(text)
    except json.JSONDecodeError as error:
        raise BadJson(f"not JSON: {error.msg} at {error.pos}") from None
    except RecursionError:
        raise BadJson("nested too deeply") from None
    except BadJson:
        raise
    except ValueError:  # Python refuses to convert whole numbers of thousands of digits
        raise BadJson("a number has too many digits") from None


def encode(value: object) -> bytes:
    """`value` as one line, with its newline."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _patient_decoder(most_values: int | None) -> JSONDecoder:
    """The standard library's decoder that is written in Python. Long strings are still scanned
    in one step."""
    decoder: Any = JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
    left = math.inf if most_values is None else most_values

    def counted(scan: Callable[[str, int], Any]) -> Callable[[str, int], Any]:
        def scan_one(text: str, at: int) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise BadJson(f"more than {most_values} values")
            return scan(text, at)

        return scan_one

    def parse_array(begin: Any, scan: Callable[[str, int], Any]) -> Any:
        return JSONArray(begin, counted(scan))

    def parse_object(begin: Any, strict: bool, scan: Callable[[str, int], Any], *rest: Any) -> Any:
        return JSONObject(begin, strict, counted(scan), *rest)

    decoder.parse_array, decoder.parse_object = parse_array, parse_object
    decoder.scan_once = py_make_scanner(decoder)
    return decoder  # type: ignore[no-any-return]


def _refuse_constant(word: str) -> NoReturn:
    raise BadJson(f"not JSON: {word} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadJson(f"a number is too large: {digits[:40]}")
    return number
