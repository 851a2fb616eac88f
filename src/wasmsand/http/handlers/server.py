"""The server itself: health and metrics."""

from __future__ import annotations

from starlette.responses import Response

from wasmsand.http.messages import Health
from wasmsand.http.metrics import CONTENT_TYPE
from wasmsand.http.routing import Call, PublicCall


async def health(call: PublicCall) -> Health:
    """`GET /healthz`"""
    status = "draining" if call.service.draining else "ok"
    return Health(status=status, version=call.service.settings.version)


async def metrics(call: Call[None, None]) -> Response:
    """`GET /metrics`"""
    service, owner = call.service, call.owner
    if owner.all_metrics:
        content = service.metrics.text()
    else:
        content = service.metrics.own_text(owner.name, service.own_figures(owner))
    return Response(content, media_type=CONTENT_TYPE)
