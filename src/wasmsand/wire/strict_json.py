"""JSON as RFC 8259 has it, and nothing beyond.

Owns the one way in which bytes of a peer become values. Rules: a line that is not UTF-8, not
JSON, nested too deeply or with a number that JSON does not have (NaN, 1e999) is `BadJson`,
whose message says what is wrong; what is encoded is one line of ASCII, so that neither a
locale nor a file name that is not UTF-8 can break it.
"""

from __future__ import annotations

import json
import math
from typing import NoReturn


class BadJson(ValueError):
    """A line that is not JSON. The message says why, in words for the peer."""


def decode(line: bytes) -> object:
    """The value that `line` holds."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"not UTF-8: byte {line[error.start]:#04x} at {error.start}") from None
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
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


def _refuse_constant(word: str) -> NoReturn:
    raise BadJson(f"not JSON: {word} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadJson(f"a number is too large: {digits[:40]}")
    return number
