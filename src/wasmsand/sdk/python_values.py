"""The values of a Python session that JSON has no form for: tuples, sets, bytes, other keys.

Owns the host's side of the form that `python_guest/values.py` writes: every object of JSON in it
has one name, the type of a value. Owns also which values the JSON of other interfaces has. Rules:
the program of the session can write anything, so only values of the types here are made. Depth, and
the number of members of sets and keys of dicts, are limited: their hashes can be chosen so that all
of them collide. Anything invalid is `NoValue`.
"""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from wasmsand.wire import strict_json

_DEPTH_MAX: Final = 50
_HASHED_MAX: Final = 4096


class NoValue(ValueError):
    """There is no value, or it is not in the form."""


def typed_value(text: str) -> Any:
    """The value that was written in the form with types. Raises `NoValue`."""
    try:
        return _Reader().read(json.loads(text), 0)
    except (ValueError, TypeError, RecursionError) as error:
        raise NoValue(str(error)) from None


class _Reader:
    def __init__(self) -> None:
        self._hashed = 0
        self._makers: Mapping[str, Callable[[Any, int], Any]] = {
            "tuple": lambda body, depth: tuple(self._items(body, depth)),
            "set": lambda body, depth: set(self._members(body, depth)),
            "frozenset": lambda body, depth: frozenset(self._members(body, depth)),
            "dict": lambda body, depth: dict(self._pairs(body, depth)),
            "bytes": lambda body, _: binascii.a2b_base64(body, strict_mode=True),
            "bytearray": lambda body, _: bytearray(binascii.a2b_base64(body, strict_mode=True)),
            "complex": lambda body, _: complex(*self._numbers(body)),
        }

    def read(self, value: Any, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise NoValue("too deep")
        if isinstance(value, list):
            return self._items(value, depth)
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise NoValue("not one type")
        ((kind, body),) = value.items()
        make = self._makers.get(kind)
        if make is None:
            raise NoValue("an unknown type")
        return make(body, depth)

    def _items(self, body: Any, depth: int) -> list[Any]:
        if not isinstance(body, list):
            raise NoValue("no list")
        return [self.read(item, depth + 1) for item in body]

    def _members(self, body: Any, depth: int) -> list[Any]:
        if isinstance(body, list):
            self._hashed += len(body)
        if self._hashed > _HASHED_MAX:
            raise NoValue("too many members")
        return self._items(body, depth)

    def _pairs(self, body: Any, depth: int) -> list[tuple[Any, Any]]:
        if not isinstance(body, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in body
        ):
            raise NoValue("no pairs")
        self._hashed += len(body)
        if self._hashed > _HASHED_MAX:
            raise NoValue("too many keys")
        return [(self.read(key, depth + 1), self.read(item, depth + 1)) for key, item in body]

    def _numbers(self, body: Any) -> list[float]:
        if not isinstance(body, list) or len(body) != 2:
            raise NoValue("no complex number")
        if not all(type(part) in (int, float) for part in body):
            raise NoValue("no complex number")
        return body


def fits_json(value: object) -> bool:
    """Whether a message in JSON can hold a value of a session without a change. A number with
    thousands of digits, or a deeply nested list, cannot be sent."""
    try:
        if _is_json(value):
            strict_json.encode(value)
            return True
    except (ValueError, RecursionError):
        pass
    return False


def _is_json(value: object) -> bool:
    """Whether JSON represents a value of a session without a change: no NaN, and no tuple."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)  # type: ignore[arg-type]
    if isinstance(value, list) and kind is list:
        return all(map(_is_json, value))
    if isinstance(value, dict) and kind is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    return value is None or kind in (bool, int, str)
