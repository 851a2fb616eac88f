"""Decoded JSON that is read field by field.

Owns `Fields`. Rules: nothing is used before its type and its bounds were checked, and every
mismatch is a `StateRejected` that names the field. Bytes are base64 text. The names of fields are
ours, so messages may show them; values are not shown.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from wasmsand.machine.saved.problems import StateRejected


def encoded(data: bytes) -> str:
    """Bytes as a JSON value."""
    return base64.b64encode(data).decode()


class Fields:
    """An object of a saved machine."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise StateRejected(f"damaged: {where} is not an object")
        self._value: dict[str, Any] = value
        self._where = where

    def __contains__(self, name: str) -> bool:
        return self._value.get(name) is not None

    def value(self, name: str) -> object:
        """A value that the caller checks."""
        return self._value.get(name)

    def entries(self, name: str, most: int) -> list[tuple[str, object]]:
        """The names and values of an object with at most `most` of them."""
        value = self._value.get(name)
        if not isinstance(value, dict) or len(value) > most:
            raise self._wrong(name)
        return list(value.items())

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return checked_integer(self._value.get(name), low, high, self._place(name))

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._value.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name)
        return value

    def text(self, name: str, most: int) -> str:
        """A string of at most `most` characters."""
        value = self._value.get(name)
        if not isinstance(value, str) or len(value) > most:
            raise self._wrong(name)
        return value

    def data(self, name: str, most: int) -> bytes:
        """At most `most` bytes."""
        return checked_bytes(self._value.get(name), most, self._place(name))

    def fields(self, name: str) -> Fields:
        """An object."""
        return Fields(self._value.get(name), self._place(name))

    def items(self, name: str, most: int) -> Sequence[object]:
        """A list of at most `most` values."""
        value = self._value.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise self._wrong(name)
        return value

    def objects(self, name: str, most: int) -> list[Fields]:
        """A list of at most `most` objects."""
        return [Fields(value, self._place(name)) for value in self.items(name, most)]

    def strings(self, name: str, most: int, length: int) -> dict[str, str]:
        """A mapping of at most `most` strings to strings of at most `length` characters."""
        found: dict[str, str] = {}
        for key, value in self.entries(name, most):
            if not isinstance(value, str) or len(value) > length:
                raise self._wrong(name)
            found[key] = value
        return found

    def numbers(self, name: str, most: int, high: int) -> dict[str, int]:
        """A mapping of at most `most` strings to numbers from 0 to `high`."""
        place = self._place(name)
        return {
            key: checked_integer(number, 0, high, place) for key, number in self.entries(name, most)
        }

    def _place(self, name: str) -> str:
        return f"{self._where}.{name}"

    def _wrong(self, name: str) -> StateRejected:
        return StateRejected(f"damaged: {self._place(name)} is wrong")


def checked_integer(value: object, low: int, high: int, where: str) -> int:
    """A whole number from `low` to `high`."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise StateRejected(f"damaged: {where} is wrong")
    return value


def checked_integers(value: object, bounds: Sequence[tuple[int, int]], where: str) -> list[int]:
    """A list with one number for each pair of bounds."""
    if not isinstance(value, list) or len(value) != len(bounds):
        raise StateRejected(f"damaged: {where} is wrong")
    return [checked_integer(n, *bound, where) for n, bound in zip(value, bounds, strict=True)]


def checked_bytes(value: object, most: int, where: str) -> bytes:
    """At most `most` bytes."""
    if not isinstance(value, str):
        raise StateRejected(f"damaged: {where} is wrong")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise StateRejected(f"damaged: {where} is wrong") from None
    if len(data) > most:
        raise StateRejected(f"damaged: {where} is too long")
    return data
