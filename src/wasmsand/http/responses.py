"""Responses with a JSON body. Rules: every error has the form of `failures.py`."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from starlette.responses import Response

from wasmsand.http.failures import ApiFailure
from wasmsand.http.metrics import Metrics
from wasmsand.wire import strict_json

_JSON = "application/json"


def json_response(value: object, status: int = 200) -> Response:
    """`value`, a message or a dataclass, as JSON."""
    content = strict_json.encode(msgspec.to_builtins(value))
    return Response(content, status, media_type=_JSON)


class Counting(Protocol):
    """A server that counts its refusals."""

    metrics: Metrics


def failure_response(service: Counting, failure: ApiFailure, headers: Any = None) -> Response:
    """The response that reports `failure`."""
    response = json_response(failure.body(), failure.status)
    if headers:
        response.headers.update(headers)
    if failure.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(failure.retry_after)))
    if failure.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if failure.code in ("unauthorized", "forbidden", "too_many_connections"):
        response.headers["Connection"] = "close"
    if failure.status in (401, 403, 429, 503):
        service.metrics.refused.labels(failure.code).inc()
    return response
