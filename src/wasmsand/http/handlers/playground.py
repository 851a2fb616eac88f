"""The page of `wasmsand serve --playground`.

Rules: its files need no token, because they contain nothing of a sandbox; the page itself uses the
server with a token, as every client does.
"""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from wasmsand.http.failures import ApiFailure
from wasmsand.http.routing import PublicCall

ANY_FILE = "*/*"


async def page(call: PublicCall) -> Response:
    """`GET /playground`"""
    _check(call)
    return RedirectResponse("/playground/", 308)


async def file(call: PublicCall) -> Response:
    """`GET /playground/{path}`"""
    _check(call)
    found = call.service.page_files.get(call.part("path"))
    if found is None:
        raise ApiFailure(404, "no_such_route", "the playground has no such file")
    content, headers = found
    return Response(content, headers=headers)


def _check(call: PublicCall) -> None:
    if not call.service.page_files:
        raise ApiFailure(
            404, "no_such_route", "there is no playground; start the server with --playground"
        )
