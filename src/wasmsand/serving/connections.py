"""The limits of one TCP connection.

Owns the timers that uvicorn does not have: for a header that never ends, a body that does not
arrive, and output that the client does not read. Rules: when a timer expires, the server closes
the connection, after an error response if the client can still read one; strangers (see
`crowd`) have the shortest timers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Protocol

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wasmsand.serving.crowd import LEAST_BYTES_PER_SECOND, ConnectionLimits, Crowd, address_of
from wasmsand.serving.joined_head import JoinedHead
from wasmsand.serving.switched import Switched

_LAST_ANSWER_SECONDS = 1.0
STATE_KEY = "wasmsand_connection"
"""The key of the connection in the state of an ASGI scope."""


class BoundedConnection(H11Protocol):
    """uvicorn's connection, with limits."""

    limits = ConnectionLimits()
    crowd = Crowd(limits)
    waits_for_others = False
    """Whether another process answers requests. `connection_class` sets all three in a subclass,
    because uvicorn creates the instances."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, STATE_KEY: self}, _loop)
        self.conn = h11.Connection(h11.SERVER, self.limits.max_header_bytes)
        self.address = ""
        self.tenant: str | None = None
        self.timeout_keep_alive = self.limits.header_seconds  # type: ignore[assignment]
        self._header_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._body_ends: float | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._refused = False
        self._switched: Switched | None = None
        self.on_lost: Callable[[], None] | None = None
        """Called when the connection ends."""
        self._steps_to_settle = 4  # iterations of the event loop, enough to read a request

    # Ownership.

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return not self._answering()

    @property
    def is_settled(self) -> bool:
        """Whether the server has read a request that the client sent at once."""
        return not self._steps_to_settle

    def _settle(self) -> None:
        self._steps_to_settle -= 1
        if self._steps_to_settle:
            self.loop.call_soon(self._settle)

    def belongs_to(self, tenant: str) -> bool:
        """Assign the connection to `tenant`; False if the tenant has too many connections."""
        if not self.crowd.adopt(self, tenant):
            return False
        self.timeout_keep_alive = self.limits.keep_alive_seconds  # type: ignore[assignment]
        return True

    def drop(self) -> None:
        """Close the connection now."""
        self.transport.abort()

    # Life cycle.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # `pause_writing` is then called as soon as the client leaves one byte unread.
        transport.set_write_buffer_limits(high=0)
        self.address = address_of(transport)
        if not self.crowd.arrive(self):
            most = self.limits.max_connections
            self._refuse(
                503,
                "server_full",
                f"the server has {most} connections; try later, or start it with a larger "
                "--max-connections",
            )
            return
        self.loop.call_soon(self._settle)
        self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._header_timer, self._body_timer, self._unread_timer):
            self._stop(timer)
        self._unset_keepalive_if_required()
        self.crowd.leave(self)
        if self._switched is not None:
            self._switched.lost()
        if self.on_lost is not None:
            self.on_lost()
        super().connection_lost(exc)
        self.app_state = {}  # it refers to this connection

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._switched is not None:
            self._switched.received(data)
            return
        super().data_received(data)
        if self._answering():
            self._join_head()
            self._await_rest()
        else:
            # No complete header so far; blank lines do not count.
            self._await_header()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whether the connection stays open although the client sends no more. The client may have
        gone, or may wait for the answer: if another process works on it, wait briefly."""
        if self._switched is None and self.waits_for_others and self._answering():
            self.loop.call_later(_LAST_ANSWER_SECONDS, self.drop)
            return True
        if self._switched is None:
            return False
        self._switched.ended()
        return True

    def switch(self, headers: list[tuple[bytes, bytes]]) -> Switched:
        """Answer the request with 101, and leave HTTP; the caller closes the connection. Raises
        `h11.LocalProtocolError` if the client did not ask for it."""
        reason = b"Switching Protocols"
        answer = h11.InformationalResponse(status_code=101, headers=headers, reason=reason)
        self.transport.write(self.conn.send(answer))
        self.cycle.disconnected = True  # uvicorn sends nothing any more
        self._switched = Switched(self.transport, self.flow.drain, self.conn.trailing_data[0])
        self.flow.resume_reading()
        return self._switched

    def on_response_complete(self) -> None:
        self.crowd.used(self)
        super().on_response_complete()
        if self._answering():  # the next request has arrived already
            self._join_head()
            self._await_rest()
        elif self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]:
            # The rest of a body that was answered early (too large, not allowed), or part of a
            # header: wait for the rest, but only for a limited time.
            self._stop_body_timer()
            self._await_header()

    def _join_head(self) -> None:
        """Let uvicorn send the response to the current request in one piece, if it is short."""
        if self.cycle.transport is self.transport and not self.cycle.response_started:
            self.cycle.transport = JoinedHead.around(self.transport, self.loop)

    @property
    def has_input(self) -> bool:
        """Whether the application can receive something of the request's body at once."""
        return self._answering() and bool(self.cycle.body or not self.cycle.more_body)

    def _await_rest(self) -> None:
        """After a header: wait for the body, if any."""
        self._stop(self._header_timer)
        self._header_timer = None
        if self.conn.their_state is h11.SEND_BODY:
            self._await_body()
        else:
            self._stop_body_timer()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # Input.

    def _await_header(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.limits.header_seconds, self.drop)

    def _await_body(self) -> None:
        now = self.loop.time()
        if self._body_ends is None:
            self._body_ends = now + self.limits.body_seconds
        self._stop(self._body_timer)
        until = min(self._body_ends, now + self.limits.body_idle_seconds)
        self._body_timer = self.loop.call_at(until, self._body_is_late)

    def _stop_body_timer(self) -> None:
        self._stop(self._body_timer)
        self._body_timer = self._body_ends = None

    def _body_is_late(self) -> None:
        self._body_timer = self._body_ends = None
        if self.conn.their_state is not h11.SEND_BODY:
            return
        if self.flow.read_paused:  # the server itself has paused reading
            self._await_body()
        elif self.cycle.response_started:
            self.drop()
        else:
            self._refuse(
                408,
                "timeout",
                f"the body took longer than {self.limits.body_seconds:g} seconds, or no data "
                f"arrived for {self.limits.body_idle_seconds:g} seconds",
            )

    # Output.

    def pause_writing(self) -> None:
        super().pause_writing()
        size = self.transport.get_write_buffer_size()
        seconds = self.limits.unread_seconds + size / LEAST_BYTES_PER_SECOND
        self._stop(self._unread_timer)
        self._unread_timer = self.loop.call_later(seconds, self.drop)

    def resume_writing(self) -> None:
        self._stop(self._unread_timer)
        self._unread_timer = None
        super().resume_writing()

    # Refusals.

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "bad_request", msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing, because any client could fill the log. The request is answered as usual."""

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Send an error response without calling the application, and close."""
        self._refused = True
        error = {"code": code, "errno": None, "message": message, "path": None}
        body = json.dumps({"error": error}, separators=(",", ":")).encode("ascii") + b"\n"
        head = (
            f"HTTP/1.1 {status} {code}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def shutdown(self) -> None:
        """At shutdown: close an idle connection now, a busy one after its response."""
        if self._switched is None and self._answering():
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def connection_class(
    limits: ConnectionLimits, *, waits_for_others: bool = False
) -> type[BoundedConnection]:
    """A class of connections with these limits."""
    own = {"limits": limits, "crowd": Crowd(limits), "waits_for_others": waits_for_others}
    return type("BoundedConnection", (BoundedConnection,), own)


class ClientConnection(Protocol):
    """What a handler may do with the connection of its request."""

    def belongs_to(self, tenant: str) -> bool:
        """See `BoundedConnection`."""

    def switch(self, headers: list[tuple[bytes, bytes]]) -> Switched:
        """See `BoundedConnection`."""

    def drop(self) -> None:
        """See `BoundedConnection`."""


def connection_of(scope: Any) -> ClientConnection | None:
    """The connection of a request."""
    found: ClientConnection | None = scope.get("state", {}).get(STATE_KEY)
    return found
