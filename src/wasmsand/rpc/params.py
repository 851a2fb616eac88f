"""Reads the parameters of a call by name and type.

Rules: an invalid parameter is `RpcError` -32602, and the message names it; a value is never
converted silently, but an integer may have any JSON notation (1e3, 1000.0); checks that need
the sandbox, such as those of paths, are left to the sandbox.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import TypeVar

from wasmsand.rpc.protocol import INVALID_PARAMS, RequestId, RpcError, id_of, is_id
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import Cancellation
from wasmsand.wire import strict_json

_Read = TypeVar("_Read")
_STEP = 1024 * 1024
"""Characters of base64 decoded in one step; a multiple of 4."""


def invalid(message: str) -> RpcError:
    """The error for an invalid parameter."""
    return RpcError(INVALID_PARAMS, f"Invalid params: {message}")


class Params:
    """The params of one request, or in a client the fields of a result."""

    def __init__(
        self,
        values: dict[str, object],
        cancellation: Cancellation | None = None,
        sandbox: int | None = None,
    ) -> None:
        self._values = values
        self.cancellation = cancellation
        """Cancels a request that waits."""
        self.sandbox = sandbox
        """The number of the sandbox that the client has given, if any."""

    def check_names(self, required: Iterable[str], optional: Iterable[str]) -> None:
        """Raises `RpcError` if a required parameter is missing, or if one is unknown."""
        for name in required:
            if name not in self._values:
                raise invalid(f"{name} is missing")
        known = [*required, *optional]
        for name in self._values:
            if name not in known:
                names = ", ".join(known) or "none"
                raise invalid(f"unknown parameter {name[:80]!r} (known: {names})")

    def is_given(self, name: str) -> bool:
        """Whether the parameter is given, even as null."""
        return name in self._values

    def has(self, name: str) -> bool:
        """Whether the parameter is given and not null."""
        return self._values.get(name) is not None

    def optional(self, read: Callable[[Params, str], _Read], name: str) -> _Read | None:
        """The parameter as read by `read`, such as `Params.text`; None if missing or null."""
        return read(self, name) if self.has(name) else None

    def value(self, name: str) -> object:
        """Any JSON value; None if missing."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        """A string."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if missing."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def number(self, name: str) -> float:
        """Any number."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return value

    def wait_seconds(self) -> float | None:
        """How long a request waits, from `timeoutMs`: 0 means not to wait, None without end."""
        if not self.has("timeoutMs"):
            return None
        milliseconds = self.number("timeoutMs")
        return 0.0 if milliseconds <= 0 else arguments.timeout_seconds("timeoutMs", milliseconds)

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number. `default`, if given, is used when the parameter is missing."""
        if default is not None and not self.has(name):
            return default
        value = self.number(name)
        if value != int(value):
            raise self._wrong(name, "a whole number")
        return int(value)

    def data(self, name: str) -> bytes:
        """Bytes, sent as base64."""
        text = self.text(name)
        try:
            if len(text) <= _STEP:
                return base64.b64decode(text, validate=True)
            # Decode in steps, so that other threads can run in between.
            steps = range(0, len(text), _STEP)
            pieces = [base64.b64decode(text[at : at + _STEP], validate=True) for at in steps]
        except (binascii.Error, ValueError) as error:
            raise invalid(f"{name} must be base64: {error}") from None
        if any(len(piece) != _STEP // 4 * 3 for piece in pieces[:-1]):
            raise invalid(f"{name} must be base64: padding in the middle")
        return b"".join(pieces)

    def variables(self, name: str) -> dict[str, str]:
        """An object of strings."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object of strings")
        for key, item in value.items():
            if not isinstance(item, str):
                raise invalid(f"{name}.{key[:80]} must be a string, not {_kind(item)}")
        return value

    def request_id(self, name: str) -> RequestId:
        """The id of another request."""
        if not is_id(self._values.get(name)):
            raise self._wrong(name, "a string or a number")
        return id_of({"id": self._values.get(name)})

    def texts(self, name: str) -> list[str]:
        """An array of strings."""
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "an array of strings")
        return value

    def packages(self, name: str) -> list[str] | str:
        """An array of strings, or a string."""
        return self.text(name) if isinstance(self._values.get(name), str) else self.texts(name)

    def integers(self, name: str) -> list[int]:
        """An array of whole numbers; empty if missing."""
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self._wrong(name, "an array of whole numbers")
        return value

    def objects(self, name: str) -> list[Params]:
        """An array of objects."""
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._wrong(name, "an array of objects")
        return [Params(item) for item in value]

    def object_or_none(self, name: str) -> Params | None:
        """An object, or null."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(name, "an object or null")
        return None if value is None else Params(value)

    def command(self, name: str) -> str | list[str]:
        """A bash script, or a program and its arguments."""
        value = self._values.get(name)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return value
        if not isinstance(value, str):
            raise self._wrong(name, "a string or an array of strings")
        return value

    def _wrong(self, name: str, wanted: str) -> RpcError:
        return invalid(f"{name} must be {wanted}, not {_kind(self._values.get(name))}")


def _kind(value: object) -> str:
    """The JSON type of `value`, in words; a number is shown."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"the number {value}" if is_number else strict_json.kind_of(value)
