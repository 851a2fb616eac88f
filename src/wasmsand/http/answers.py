"""Answers of a server, as values: the client's half of `messages` and `failures`.

Rules: standard library only; what a server sends is checked as far as it is used, and an
answer that is not one of ours is a `ServerError` that says so.
"""

from __future__ import annotations

import base64
from typing import Any

from wasmsand.http.failures import EXCEPTIONS, GONE
from wasmsand.sdk.backend import Ended
from wasmsand.sdk.errors import (
    ArchiveError,
    CommandError,
    FileError,
    SandboxClosedError,
    ServerError,
    file_error,
)
from wasmsand.wire import strict_json


def object_of(body: bytes) -> dict[str, Any]:
    """The JSON object that an answer is."""
    try:
        value = strict_json.decode(body)
    except strict_json.BadJson:
        value = None
    if not isinstance(value, dict):
        raise ServerError(f"not a response of wasmsand: {body[:80]!r}", "not_wasmsand", 0)
    return value


def exact_bytes(text: str | None, encoded: str | None) -> bytes:
    """Bytes that were sent as text, or as base64 if they are not UTF-8."""
    return base64.b64decode(encoded) if encoded is not None else (text or "").encode("utf-8")


def ended_of(end: dict[str, Any]) -> Ended:
    """How a command ended."""
    return Ended(
        exit_code=end["exit_code"],
        timed_out=end["timed_out"],
        seconds=end["execution_time_ms"] / 1000,
        notices=tuple(end["notices"]),
    )


def exception_of(status: int, body: bytes) -> Exception:
    """The exception that an answer is: the one that was raised on the server, or what the
    server itself has to say."""
    try:
        error = object_of(body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ServerError, KeyError, TypeError):
        return ServerError(
            f"not a response of wasmsand (status {status}): {body[:80]!r}", "", status
        )
    errno, path = error.get("errno"), error.get("path")
    if code in GONE:
        return SandboxClosedError(message)
    for kind, _, known in EXCEPTIONS:
        if code == known:
            if kind is ArchiveError:
                return ArchiveError(message, str(errno), str(path))
            if issubclass(kind, FileError):
                return file_error(message, str(errno), str(path))
            return CommandError(message, str(errno)) if kind is CommandError else kind(message)
    return ServerError(message, code, status)
