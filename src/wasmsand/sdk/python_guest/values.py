"""Which values an answer contains, and in which form.

Rules: what JSON can represent without a change is sent as it is. Other values of the built-in types
are sent in a form in which every object of JSON has one name, the type: `{"tuple": [1, 2]}`. All
other values are only described, except that scalars of numpy are sent as numbers. `python_values`
is the other end, and has the same limits.
"""

from __future__ import annotations

import json
import sys
from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wasmsand.sdk.python_driver import driver

DEPTH_MAX, INTEGER_BITS_MAX, HASHED_MAX = 50, 1024, 4096
COLLECTIONS = (tuple, set, frozenset)


def segments(value: object) -> dict[str, bytes]:
    """The segments of an answer for a value of a built-in type."""
    if is_plain(value):
        return {"value": driver.encoded(json.dumps(value, ensure_ascii=False))}
    hashed = [0]
    try:
        typed = with_types(value, hashed)
    except ValueError:
        return {}
    if hashed[0] > HASHED_MAX:
        return {}
    return {"typed": driver.encoded(json.dumps(typed, ensure_ascii=False))}


def number(value: object) -> dict[str, bytes]:
    """The segments for a scalar of numpy, which is sent as a number of Python; none for others."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return {}
    item = value.item()
    return segments(item) if type(item) in (bool, int, float, complex) else {}


def is_plain(value: object, depth: int = 0) -> bool:
    """Whether JSON can represent the value without a change."""
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return True
    if isinstance(value, int):
        return kind is int and value.bit_length() <= INTEGER_BITS_MAX
    if depth == DEPTH_MAX:
        return False
    if isinstance(value, list):
        return kind is list and all(is_plain(item, depth + 1) for item in value)
    return (
        isinstance(value, dict)
        and kind is dict
        and all(type(k) is str and is_plain(v, depth + 1) for k, v in value.items())
    )


def with_types(value: object, hashed: list[int], depth: int = 0) -> object:
    """The value, in the form with types. `hashed` counts members of sets and keys of dicts."""
    kind = type(value)
    if is_plain(value, DEPTH_MAX):
        return value
    if depth < DEPTH_MAX:
        if isinstance(value, list) and kind is list:
            return [with_types(item, hashed, depth + 1) for item in value]
        if isinstance(value, COLLECTIONS) and kind in COLLECTIONS:
            hashed[0] += len(value) if kind is not tuple else 0
            return {kind.__name__: [with_types(item, hashed, depth + 1) for item in value]}
        if isinstance(value, dict) and kind is dict:
            hashed[0] += len(value)
            pairs = value.items()
            return {
                "dict": [
                    [with_types(k, hashed, depth + 1), with_types(v, hashed, depth + 1)]
                    for k, v in pairs
                ]
            }
        if isinstance(value, bytes | bytearray) and kind in (bytes, bytearray):
            return {kind.__name__: b2a_base64(value, newline=False).decode()}
        if isinstance(value, complex) and kind is complex:
            return {"complex": [value.real, value.imag]}
    raise ValueError(value)
