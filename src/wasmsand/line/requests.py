"""The requests of the line protocol, and their validation.

Rules: types and defaults of all fields are defined here; null means the default; unknown fields
are ignored; an invalid request raises `BadRequest`, which carries the request's type and id if
they could be read, so that the response can have them too.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from wasmsand.wire import strict_json

DEFAULT_TIME_LIMIT_MS: Final = 5000
_LONGEST_TIME_LIMIT_MS: Final = 10**12
_DEFAULT_MODE: Final = "0644"
_OCTAL: Final = re.compile(r"(0o)?[0-7]{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """Run a command."""

    id: str
    command: str
    time_limit_ms: float


@dataclass(frozen=True, slots=True)
class WriteFileRequest:
    """Create or replace a file."""

    id: str
    path: str
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class ReadFileRequest:
    """Read a file, as text or as base64."""

    id: str
    path: str
    as_text: bool


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """Replace the sandbox by a new one."""

    id: str


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Report the server's state."""

    id: str


LineRequest = ShellRequest | WriteFileRequest | ReadFileRequest | ResetRequest | StatusRequest
TYPE_OF: Final[dict[type[LineRequest], str]] = {
    ShellRequest: "shell",
    WriteFileRequest: "write_file",
    ReadFileRequest: "read_file",
    ResetRequest: "reset",
    StatusRequest: "status",
}


class BadRequest(Exception):
    """An invalid request. `type` and `id` are None if they could not be read."""

    def __init__(self, message: str, type_: str | None = None, id_: str | None = None) -> None:
        super().__init__(message)
        self.type = type_
        self.id = id_


def request_of(line: bytes) -> LineRequest:
    """Decode a line. Raises `BadRequest`."""
    try:
        value = strict_json.decode(line)
    except strict_json.BadJson as error:
        raise BadRequest(f"Invalid request: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("Invalid request: not a JSON object")
    fields = _Fields(value)
    fields.id = fields.text("id")
    match fields.text("type"):
        case "shell":
            return ShellRequest(fields.id, fields.guest_text("command"), fields.time_limit())
        case "write_file":
            return WriteFileRequest(fields.id, fields.path(), fields.content(), fields.mode())
        case "read_file":
            return ReadFileRequest(fields.id, fields.path(), fields.is_text())
        case "reset":
            return ResetRequest(fields.id)
        case "status":
            return StatusRequest(fields.id)
        case unknown:
            raise fields.bad(
                f"unknown type {unknown[:80]!r}; use one of: {', '.join(TYPE_OF.values())}"
            )


class _Fields:
    """The fields of one JSON object."""

    def __init__(self, values: dict[str, object]) -> None:
        self._values = values
        self.id: str | None = None

    def bad(self, message: str) -> BadRequest:
        found = self._values.get("type")
        return BadRequest(
            f"Invalid request: {message}", found if isinstance(found, str) else None, self.id
        )

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise self.bad(f"{name} is missing")
            return default
        if not isinstance(value, str):
            raise self.bad(f"{name} must be a string, not {strict_json.kind_of(value)}")
        return value

    def guest_text(self, name: str) -> str:
        """Text for the guest, whose strings end at a NUL."""
        value = self.text(name)
        if "\0" in value:
            raise self.bad(f"{name} must not contain a NUL character")
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise self.bad(f"{name} must be encodable as UTF-8") from None
        return value

    def path(self) -> str:
        value = self.guest_text("path")
        if not value:
            raise self.bad("path must not be empty")
        return value

    def time_limit(self) -> float:
        value = self._values.get("time_limit_ms")
        if value is None:
            return DEFAULT_TIME_LIMIT_MS
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(f"time_limit_ms must be a number, not {strict_json.kind_of(value)}")
        if value <= 0:
            raise self.bad(f"time_limit_ms must be positive, not {value}")
        return min(value, _LONGEST_TIME_LIMIT_MS)

    def is_text(self) -> bool:
        encoding = self.text("encoding", "text")
        if encoding not in ("text", "base64"):
            raise self.bad(f'encoding must be "text" or "base64", not {encoding[:80]!r}')
        return encoding == "text"

    def content(self) -> bytes:
        text = self.text("content")
        if self.is_text():
            try:
                return text.encode("utf-8")
            except UnicodeEncodeError:
                raise self.bad(
                    'content must be encodable as UTF-8; use "encoding": "base64"'
                ) from None
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.bad(f"content must be base64: {error}") from None

    def mode(self) -> int:
        text = self.text("mode", _DEFAULT_MODE)
        if not _OCTAL.fullmatch(text) or int(text, 8) > 0o7777:
            raise self.bad(f'mode must be octal, such as "0644", not {text[:80]!r}')
        return int(text, 8)
