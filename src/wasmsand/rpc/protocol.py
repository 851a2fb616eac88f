"""JSON-RPC 2.0: requests, responses, errors.

Rules: messages of the peer are validated here, once; a notification gets no response, even if
it fails; the response to an invalid request has the id null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
SANDBOX_ERROR: Final = 1
"""An operation of the sandbox failed; the message begins with the name of an errno."""

RequestId = str | int | float | None


class RpcError(Exception):
    """An error response. `data` holds details for programs."""

    def __init__(self, code: int, message: str, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One call."""

    id: RequestId
    method: str
    params: dict[str, object]
    is_notification: bool


def request_of(value: object) -> RpcRequest:
    """`value` as a request. Raises `RpcError` (-32600, or -32602 for params by position)."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Invalid Request: not an object")
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'Invalid Request: jsonrpc must be "2.0"')
    method = value.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "Invalid Request: method must be a string")
    params = value.get("params", {})
    if isinstance(params, list):
        raise RpcError(
            INVALID_PARAMS, "Invalid params: params must be an object; they are passed by name"
        )
    if not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "Invalid Request: params must be an object")
    if not is_id(value.get("id")):
        raise RpcError(INVALID_REQUEST, "Invalid Request: id must be a string, a number or null")
    return RpcRequest(value.get("id"), method, params, "id" not in value)


def is_id(value: object) -> bool:
    """Whether JSON-RPC allows `value` as an id."""
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))


def id_of(value: object) -> RequestId:
    """The id for the response to an invalid request: the request's own if it has one."""
    found = value.get("id") if isinstance(value, dict) else None
    return found if is_id(found) else None


def success(request_id: RequestId, result: object) -> dict[str, object]:
    """The response to a call that succeeded."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: RequestId, error: RpcError) -> dict[str, object]:
    """The response to a call that failed."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


def notification(method: str, params: Mapping[str, object]) -> dict[str, object]:
    """A message that gets no response."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
