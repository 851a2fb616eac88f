"""Terminals of a sandbox, over a WebSocket."""

from __future__ import annotations

from contextlib import ExitStack

import h11
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wasmsand.http.failures import ApiFailure
from wasmsand.http.responses import failure_response
from wasmsand.http.routing import Call
from wasmsand.http.terminal_session import FIRST_MAX, TerminalSession
from wasmsand.http.websocket import WebSocket, handshake
from wasmsand.serving.connections import connection_of

PROTOCOL = "wasmsand.terminal.v1"
"""The subprotocol, which clients may name."""


async def terminal(call: Call[None, None]) -> Response:
    """`GET /v1/sandboxes/{sandbox}/terminal`"""
    answer = handshake(call.request.scope["headers"], PROTOCOL)
    with ExitStack() as held:
        held.enter_context(call.service.terminal(call.owner))
        held.enter_context(call.running_command())
        held.enter_context(call.service.registry.use(call.entry))
        return TerminalResponse(call, answer, held.pop_all())


class TerminalResponse(Response):
    """A WebSocket, and the terminal behind it."""

    def __init__(
        self, call: Call[None, None], answer: list[tuple[bytes, bytes]], held: ExitStack
    ) -> None:
        """`answer` has the headers of the response; `held` is closed when the terminal ends."""
        self.status_code = 200
        self.background = None
        self.raw_headers = []
        self._call = call
        self._answer = answer
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            connection = connection_of(scope)
            assert connection is not None
            try:
                switched = connection.switch(self._answer)
            except h11.LocalProtocolError:
                failure = ApiFailure(400, "bad_request", "the request has a body")
                await failure_response(self._call.service, failure)(scope, receive, send)
                return
            await TerminalSession(self._call, WebSocket(switched, FIRST_MAX)).run()
