"""Decodes a server's responses: the client's side of `messages` and `failures`.

Rules: standard library only; the client checks the parts of a response that it uses; a
response that is not from wasmsand raises `ServerError`.
"""

from __future__ import annotations

import base64
from typing import Any

from wasmsand.http.failures import EXCEPTIONS, GONE, NO_SNAPSHOT
from wasmsand.sdk.backend import Ended
from wasmsand.sdk.errors import (
    ArchiveError,
    CommandError,
    FileError,
    PackageError,
    PortError,
    SandboxClosedError,
    SandboxCrashedError,
    ServerError,
    StateError,
    file_error,
)
from wasmsand.wire import strict_json


def object_of(body: bytes) -> dict[str, Any]:
    """The body of a response as a JSON object."""
    try:
        value = strict_json.decode(body)
    except strict_json.BadJson:
        value = None
    if not isinstance(value, dict):
        raise ServerError(f"not a response from wasmsand: {body[:80]!r}", "not_wasmsand", 0)
    return value


def exact_bytes(text: str | None, encoded: str | None) -> bytes:
    """Decode bytes that were sent as text, or as base64 because they are not UTF-8."""
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
    """The exception for an error response: the SDK's exception that its code names, otherwise
    `ServerError`."""
    try:
        error = object_of(body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ServerError, KeyError, TypeError):
        return ServerError(
            f"not a response from wasmsand (status {status}): {body[:80]!r}", "", status
        )
    errno, path = error.get("errno"), error.get("path")
    if code in GONE:
        return SandboxClosedError(message)
    if code == NO_SNAPSHOT:
        return StateError(message)
    for kind, _, known in EXCEPTIONS:
        if code == known:
            if kind is ArchiveError:
                return ArchiveError(message, str(errno), str(path))
            if issubclass(kind, FileError):
                return file_error(message, str(errno), str(path))
            if issubclass(kind, PackageError):
                return kind(message, str(error.get("package", "")))
            if issubclass(kind, PortError):
                return kind(message, str(errno), 0)
            if kind is SandboxCrashedError:
                status_of_exit = error.get("exit_status")
                return kind(message, status_of_exit if isinstance(status_of_exit, int) else 0)
            return CommandError(message, str(errno)) if kind is CommandError else kind(message)
    return ServerError(message, code, status)
