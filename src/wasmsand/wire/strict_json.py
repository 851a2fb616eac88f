"""JSON exactly as RFC 8259 defines it.

Owns the decoding of all input from peers. Rules: a line that is not UTF-8, not JSON, nested too
deeply, or has a number that JSON does not allow (NaN) or that is too large (1e999) raises
`BadJson`, whose message says why; encoded values are one line of ASCII, so that neither the locale
nor a file name that is not UTF-8 can break them. A long line is decoded value by value, so that
other threads can run in between; the fast decoder would hold the GIL.
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
"""From this size on, a line is decoded value by value."""

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (NoneType, "null"),
    (bool, "a boolean"),  # which is also an int
    ((int, float), "a number"),
    (str, "a string"),
    ((list, tuple), "an array"),
    (Mapping, "an object"),
)


def kind_of(value: object) -> str:
    """The JSON type of `value`, in words, for messages."""
    for types, word in _KINDS:
        if isinstance(value, types):
            return word
    return type(value).__name__


class BadJson(ValueError):
    """A line that is not valid JSON. The message says why; it may be sent to the peer."""


def decode(line: bytes, most_values: int | None = None) -> object:
    """Decode `line`. A long line may have at most `most_values` values in its lists and
    objects."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"not UTF-8: byte {line[error.start]:#04x} at {error.start}") from None
    try:
        if len(line) < _LONG_LINE:
            return _decoder.decode(text)
        return _patient_decoder(most_values).decode(text)
    except json.JSONDecodeError as error:
        raise BadJson(f"not JSON: {error.msg} at {error.pos}") from None
    except RecursionError:
        raise BadJson("nested too deeply") from None
    except BadJson:
        raise
    except ValueError:  # Python refuses to convert integers with thousands of digits
        raise BadJson("a number has too many digits") from None


def encode(value: object) -> bytes:
    """`value` as one line, with its newline."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _patient_decoder(most_values: int | None) -> JSONDecoder:
    """The standard library's decoder in pure Python. It still scans a long string in one
    step."""
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


_decoder: Final = JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
"""`json.loads` would create one for each line."""
