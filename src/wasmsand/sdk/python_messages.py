"""The messages of a Python session's interpreter, as the host reads them.

Owns the format, for which `python_driver` is the other end. A message is one line: a JSON object
(the header), and after each of the following tab characters one segment in base64, whose names are
in the header. Rules: the program shares its process with the driver and can write anything, so
nothing here trusts a line. Only the header, of at most `HEADER_MAX` bytes, is parsed as JSON;
segments are bytes, so what a line becomes is not larger than the line. JSON in a segment is decoded
only up to `JSON_MAX` bytes. Anything invalid is None, never an exception.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wasmsand.sdk.python_values import NoValue, typed_value
from wasmsand.sdk.results import DisplayItem, PythonError
from wasmsand.wire import strict_json

LINE_MAX: Final = 8 << 20
HEADER_MAX: Final = 16 << 10
SEGMENTS_MAX: Final = 32
JSON_MAX: Final = 1 << 20
ITEM_COST: Final = 1024
"""Bytes of `max_output_bytes` that each item takes in addition to its data, so that the number of
items is limited too."""
_JSON_VALUE_COST: Final = 64
_ID_MAX: Final = 200
_SHORT_NUMBER: Final = 18
"""Digits of a number that is read without a parser."""
_ZERO: Final = ord("0")
_PLAIN_ANSWER: Final = re.compile(
    rb'\{"token": "([0-9a-f]{16})", "kind": "answer", "at": (\d{1,9}), '
    rb'"segments": \["repr", "value"\]\}\t([\w+/=]*)\t([\w+/=]*)',
    re.ASCII,
)
"""The answer with a value that JSON has: read without a parser, because it is the most frequent."""
_MIME: Final = re.compile(r"[a-z]{1,20}/[a-z0-9][a-z0-9.+-]{0,98}")
_TEXT_TYPES: Final = frozenset({"image/svg+xml", "application/javascript"})


class Message(NamedTuple):
    """One valid message. Its content is still untrusted."""

    kind: str
    header: Mapping[str, Any]
    segments: Mapping[str, bytes]

    def text(self, name: str) -> str | None:
        """A segment as text; None if there is none."""
        data = self.segments.get(name)
        return None if data is None else as_text(data)


def parse(line: bytes, token: str) -> Message | None:
    """The message in a line, if it is one of the request with this token."""
    if len(line) > LINE_MAX or not line.startswith(b"{"):
        return None
    plain = _PLAIN_ANSWER.fullmatch(line)
    if plain is not None:
        return _plain_answer(plain, token)
    head, *encoded = line.split(b"\t", SEGMENTS_MAX + 1)
    if len(head) > HEADER_MAX or len(encoded) > SEGMENTS_MAX:
        return None
    try:
        header = strict_json.decode(head)
        if not isinstance(header, dict) or header.get("token") != token:
            return None
        names, kind = header.get("segments"), header.get("kind")
        if not isinstance(names, list) or not isinstance(kind, str):
            return None
        if len(names) != len(encoded) or not all(isinstance(name, str) for name in names):
            return None
        decoded = [binascii.a2b_base64(part, strict_mode=True) for part in encoded]
        return Message(kind, header, dict(zip(names, decoded, strict=True)))
    except (ValueError, RecursionError):
        return None


def _plain_answer(line: re.Match[bytes], token: str) -> Message | None:
    found, at, shown, value = line.groups()
    if found.decode() != token:
        return None
    try:
        return Message(
            "answer",
            {"at": int(at)},
            {
                "repr": binascii.a2b_base64(shown, strict_mode=True),
                "value": binascii.a2b_base64(value, strict_mode=True),
            },
        )
    except ValueError:
        return None


def as_text(data: bytes) -> str:
    """Bytes as text, with the surrogates that Python's strings can have."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def value_of(message: Message) -> Any:
    """The value in an answer. Python's NaN and infinities are values too. Raises `NoValue` if the
    answer has none."""
    data = message.segments.get("value")
    typed = message.segments.get("typed", b"")
    if max(len(data or b""), len(typed)) > JSON_MAX:
        raise NoValue("too long")
    if data is None:
        return typed_value(as_text(typed))
    if len(data) <= _SHORT_NUMBER and data.isdigit() and data[0] != _ZERO:
        return int(data)
    try:
        return json.loads(as_text(data))
    except (ValueError, RecursionError):
        raise NoValue("not JSON") from None


def error_of(message: Message) -> PythonError | None:
    """The exception in an answer, if there is one."""
    if "type" not in message.segments:
        return None
    names = ("type", "message", "traceback")
    return PythonError(*(message.text(name) or "" for name in names))


def display_item(message: Message) -> tuple[DisplayItem, int]:
    """What a message displays, and how much of `max_output_bytes` it takes."""
    forms: dict[str, Any] = {}
    cost = ITEM_COST
    for mime, data in message.segments.items():
        if _MIME.fullmatch(mime) is None:
            continue
        cost += len(data)
        if mime == "application/json" or mime.endswith("+json"):
            cost += _JSON_VALUE_COST * sum(data.count(sign) for sign in (b"[", b"{", b","))
            try:
                forms[mime] = strict_json.decode(data[: JSON_MAX + 1])
            except strict_json.BadJson:
                continue
        elif mime.startswith("text/") or mime in _TEXT_TYPES:
            forms[mime] = as_text(data)
        else:
            forms[mime] = data
    metadata, name = message.header.get("metadata"), message.header.get("id")
    return DisplayItem(
        data=forms,
        metadata=metadata if isinstance(metadata, dict) else {},
        is_main=message.header.get("main") is True,
        display_id=name[:_ID_MAX] if isinstance(name, str) else None,
    ), cost
