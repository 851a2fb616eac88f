"""The requests of one connection, one after the other.

Owns `Conversation`, which reads heads of requests, refuses or starts an exchange, and continues
with the next. Rules: requests are answered in their order; the next head is read when the last
response is complete. After a refusal the connection stays usable if the rest of the request is
short; otherwise it ends, and what the guest still sends is discarded, up to a limit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

import h11

from wasmsand.machine.network.inspecting.examination import Examined, examine, path_of
from wasmsand.machine.network.inspecting.exchange import ROOM, AnyExchange, Exchange, Outcome
from wasmsand.machine.network.inspecting.heads import check_head
from wasmsand.machine.network.inspecting.order import RequestOrder, RequestSeen
from wasmsand.machine.network.inspecting.refusals import Refusal, response_to
from wasmsand.machine.network.inspecting.secrets import HEADS_MAX, Secrets
from wasmsand.machine.network.inspecting.transports import Transport

_REFUSED_BODY_MAX: Final = 64 * 1024
"""Longest body of a refused request after which the connection stays usable."""
_STEPS_MAX: Final = 64
"""Steps of one call. A guest that sends chunks of one byte makes each step move one byte."""
_BARE_LINE_END: Final = re.compile(rb"(?<!\r)\n")
_DISCARDED_MAX: Final = 16 * 1024 * 1024
"""Most bytes that are discarded so that a guest that is still sending can read the refusal."""
_TOO_LONG: Final = f"the head of the request is longer than {HEADS_MAX} bytes"


class Conversation:
    """HTTP between a guest and one host."""

    def __init__(
        self, order: RequestOrder, guest: Transport, server: Transport, *, secure: bool
    ) -> None:
        self._order = order
        self._secrets = Secrets(order.headers, order.placeholders)
        self._guest = guest
        self._server = server
        self._secure = secure
        self._head = bytearray()
        self._searched = 0
        self._guest_http = h11.Connection(h11.SERVER)
        self._exchange: AnyExchange | None = None
        self._exchanges = 0
        self._examined: Examined | None = None
        self._began = 0.0
        self._state: Callable[[], bool] = self._read_head
        self.is_over = False
        """Whether nothing more is read from either side."""
        self.was_cut_off = False
        """Whether the guest must not take the end for a proper one."""
        self.ignores_server = False
        self.has_more = False
        """Whether `advance` can do more at once."""

    def advance(self) -> None:
        """Do what can be done now, up to a limit: the caller serves other connections too."""
        self.has_more = False
        for _ in range(_STEPS_MAX):
            if self.is_over or not self._state():
                return
        self.has_more = True

    # Heads.

    def _read_head(self) -> bool:
        if self._server.read() or (self._server.at_end and self._server.is_ready):
            # The server closed an idle connection, or sent something that nobody asked for. If it
            # could not be connected to, the next request is answered with the reason.
            self._finish()
            return True
        data = self._guest.read()
        self._head += data
        if not self._searched:
            while self._head.startswith(b"\r\n"):  # before a request, empty lines are ignored
                del self._head[:2]
        searched, self._searched = self._searched, len(self._head)
        end = self._head.find(b"\r\n\r\n", max(0, searched - 3))
        if end >= 0:
            self._begin(end + 4)
            return True
        if len(self._head) > HEADS_MAX:
            self._reject(Refusal(431, _TOO_LONG))
            return True
        if _BARE_LINE_END.search(self._head, searched):
            self._reject(Refusal(400, "a line of the head does not end with CR LF"))
            return True
        if self._guest.at_end:
            self._finish()
            return True
        return bool(data)

    def _begin(self, end: int) -> None:
        head, rest = bytes(self._head[:end]), bytes(self._head[end:])
        self._head.clear()
        self._searched = 0
        self._began = time.monotonic()
        http = self._guest_http = h11.Connection(h11.SERVER)
        try:
            if end > HEADS_MAX:
                raise Refusal(431, _TOO_LONG)
            check_head(head)
            http.receive_data(head + rest)
            request = http.next_event()
        except Refusal as refusal:
            self._reject(refusal)
            return
        except h11.RemoteProtocolError:
            self._reject(Refusal(400, "the head of the request is malformed"))
            return
        assert isinstance(request, h11.Request)
        try:
            examined = examine(request, self._order, self._secrets, secure=self._secure)
            if reason := self._order.admit():
                raise Refusal(403, reason)
        except Refusal as refusal:
            self._refuse(request, refusal)
            return
        self._examined = examined
        self._exchange = self._new_exchange(http, examined)
        self._exchanges += 1
        self._state = self._move

    def _new_exchange(self, http: h11.Connection, examined: Examined) -> AnyExchange:
        exchange = Exchange(http, examined, self._secrets, self._guest, self._server)
        exchange.is_first = self._exchanges == 0
        return exchange

    # Refusals.

    def _reject(self, refusal: Refusal) -> None:
        """Answer a request whose end is unknown."""
        http = h11.Connection(h11.SERVER)
        self._guest.write(response_to(refusal, http, close=True, is_head=False))
        self._see(allowed=False, method="", path="", status=refusal.status, reason=refusal.text)
        self._discard_the_rest()

    def _refuse(self, request: h11.Request, refusal: Refusal) -> None:
        """Answer a complete head, and keep the connection if the rest is short."""
        http = self._guest_http
        headers = dict(request.headers)
        length = headers.get(b"content-length", b"0")
        close = (
            int(length) > _REFUSED_BODY_MAX
            or b"transfer-encoding" in headers
            or http.they_are_waiting_for_100_continue
            or request.method == b"CONNECT"
        )
        is_head = request.method == b"HEAD"
        self._guest.write(response_to(refusal, http, close=close, is_head=is_head))
        method = request.method.decode("ascii")
        path, status = path_of(request), refusal.status
        self._see(allowed=False, method=method, path=path, status=status, reason=refusal.text)
        if close or http.our_state is not h11.DONE:
            self._discard_the_rest()
        else:
            self._state = self._skip_body

    def _skip_body(self) -> bool:
        try:
            event = self._guest_http.next_event()
        except h11.RemoteProtocolError:
            self._discard_the_rest()
            return True
        if event is h11.NEED_DATA:
            data = self._guest.read()
            if data:
                self._guest_http.receive_data(data)
            elif self._guest.at_end:
                self._finish()
            return bool(data) or self.is_over
        if isinstance(event, h11.EndOfMessage):
            self._next_head(self._guest_http.trailing_data[0])
        elif event is h11.PAUSED:
            self._discard_the_rest()
        return True

    def _discard_the_rest(self) -> None:
        """Say no more, but read on, so that a guest that is still sending is not reset before it
        has read the response."""
        self._server.finish()
        self._guest.finish()
        self._guest.ignore()
        self.ignores_server = True
        self._state = self._discard

    def _discard(self) -> bool:
        if self._guest.at_end or self._guest.ignored > _DISCARDED_MAX:
            self.is_over = True
        return False

    # Exchanges.

    def _move(self) -> bool:
        exchange = self._exchange
        assert exchange is not None
        moved = exchange.step()
        if exchange.outcome is None:
            return moved
        self._see_exchange(exchange)
        if exchange.outcome is Outcome.REUSABLE:
            self._next_head(exchange.left_by_guest)
        elif exchange.outcome is Outcome.SWITCHED:
            self._server.write(exchange.left_by_guest)
            self._guest.write(exchange.left_by_server)
            self._state = self._pass_through
        elif exchange.outcome is Outcome.CLOSE and exchange.request_ended:
            self._finish()
        elif exchange.outcome is Outcome.CLOSE:
            self._discard_the_rest()
        else:
            self.was_cut_off = True
            self._server.finish()
            self.is_over = True
        return True

    def _next_head(self, left: bytes) -> None:
        self._exchange = None
        self._head += left
        self._state = self._read_head

    def _pass_through(self) -> bool:
        moved = False
        for source, target in ((self._guest, self._server), (self._server, self._guest)):
            if target.queued < ROOM:
                data = source.read()
                moved = moved or bool(data)
                target.write(data)
                if source.at_end:
                    target.finish()
        if self._guest.at_end and self._server.at_end:
            self.is_over = True
        return moved

    def _finish(self) -> None:
        self._guest.finish()
        self._server.finish()
        self.is_over = True

    # Events.

    def abandon(self, reason: str) -> None:
        """The connection has ended for a reason outside of HTTP: report the current request."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and exchange.outcome is None:
            exchange.reason = reason
            self._see_exchange(exchange)
        self.is_over = True

    def _see_exchange(self, exchange: AnyExchange) -> None:
        assert self._examined is not None
        self._see(
            allowed=True,
            method=self._examined.method,
            path=self._examined.path,
            status=exchange.status,
            reason=exchange.reason,
            sent=exchange.sent,
            received=exchange.received,
        )

    def _see(
        self,
        *,
        allowed: bool,
        method: str,
        path: str,
        status: int,
        reason: str,
        sent: int = 0,
        received: int = 0,
    ) -> None:
        took = (time.monotonic() - self._began) * 1000 if self._began else 0.0
        self._order.on_request(
            RequestSeen(allowed, method, path, status, reason, sent, received, took)
        )
