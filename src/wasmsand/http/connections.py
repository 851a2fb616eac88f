"""What one TCP connection may take.

Owns the timers that uvicorn does not have: for a header that never ends, and for output
that nobody reads; and the number of connections. Rules: a client that breaks one of them
is cut off at once, with no answer if it would not read it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wasmsand.http.failures import ApiFailure
from wasmsand.http.settings import Settings
from wasmsand.wire import strict_json


class BoundedConnection(H11Protocol):
    """uvicorn's connection, with limits."""

    settings = Settings()
    """Set in the subclass that `connection_class` makes: uvicorn makes the instances."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.settings.max_connections:
            self._refuse(
                ApiFailure(
                    503,
                    "server_full",
                    f"the server has {self.settings.max_connections} connections; try later, or "
                    "start it with a larger --max-connections",
                )
            )
            return
        self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop(self._header_timer)
        self._stop(self._unread_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answering():
            self._stop(self._header_timer)
            self._header_timer = None
        else:
            self._await_header()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self._answering():
            # The answer did not wait for the body (too large, not allowed): what is left of it
            # may come, but not for ever.
            self._await_header()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_header(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.settings.header_seconds, self._abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self.settings.unread_seconds, self._abort)

    def resume_writing(self) -> None:
        self._stop(self._unread_timer)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(ApiFailure(400, "bad_request", msg))

    def _refuse(self, failure: ApiFailure) -> None:
        body = strict_json.encode(failure.body())
        head = (
            f"HTTP/1.1 {failure.status} {failure.code}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _abort(self) -> None:
        self.transport.abort()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def connection_class(settings: Settings) -> type[BoundedConnection]:
    """The class of a server's connections."""
    return type("BoundedConnection", (BoundedConnection,), {"settings": settings})
