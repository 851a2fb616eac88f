"""The server itself: is it well, what does it do, how is it used."""

from __future__ import annotations

from starlette.responses import Response

from wasmsand.http.messages import Health
from wasmsand.http.metrics import CONTENT_TYPE
from wasmsand.http.routing import Call


async def health(call: Call[None, None]) -> Health:
    """`GET /healthz`"""
    status = "draining" if call.service.draining else "ok"
    return Health(status=status, version=call.service.settings.version)


async def metrics(call: Call[None, None]) -> Response:
    """`GET /metrics`"""
    return Response(call.service.metrics.text(), media_type=CONTENT_TYPE)
