"""One allowed request and its response.

Owns `AnyExchange`, what a conversation needs of an exchange, and `Exchange`: two parsers, one for
each side, and the bodies between them. Rules: both messages are parsed and written anew, so that
both sides agree on where they end. A body moves on only while the other side has room. Trailers are
dropped. The response may come before the request's end.
"""

from __future__ import annotations

import enum
from typing import Final, Protocol

import h11

from wasmsand.machine.network.inspecting.examination import Examined, response_headers
from wasmsand.machine.network.inspecting.refusals import Refusal, response_to
from wasmsand.machine.network.inspecting.secrets import Secrets
from wasmsand.machine.network.inspecting.transports import Transport
from wasmsand.machine.network.inspecting.websocket import is_accepted

ROOM: Final = 64 * 1024
"""Bytes that wait for one side before nothing more is read from the other."""
RESPONSE_HEAD_MAX: Final = 256 * 1024
_INTERIM_RESPONSES_MAX: Final = 16


class Outcome(enum.Enum):
    """How an exchange ended."""

    REUSABLE = enum.auto()
    """The next request may follow."""
    CLOSE = enum.auto()
    """The response is complete; both connections end."""
    SWITCHED = enum.auto()
    """Both sides speak WebSocket now."""
    CUT_OFF = enum.auto()
    """The response has begun but cannot be completed."""


class AnyExchange(Protocol):
    """An allowed request and its response, from the first byte to the last."""

    request_ended: bool
    outcome: Outcome | None
    reason: str
    status: int
    sent: int
    received: int

    def step(self) -> bool:
        """Do what can be done now; whether something was."""

    @property
    def left_by_guest(self) -> bytes:
        """What the guest has sent after its request."""

    @property
    def left_by_server(self) -> bytes:
        """What the server has sent after its response."""


class Exchange:
    """Moves one request to the host and its response to the guest."""

    def __init__(
        self,
        guest_http: h11.Connection,
        examined: Examined,
        secrets: Secrets,
        guest: Transport,
        server: Transport,
    ) -> None:
        self._guest_http = guest_http
        self._server_http = h11.Connection(h11.CLIENT, RESPONSE_HEAD_MAX)
        self._examined = examined
        self._secrets = secrets
        self._guest = guest
        self._server = server
        self.request_ended = False
        """Whether the guest has sent the whole request."""
        self._server_ended = False
        self._interim = 0
        self.is_first = True
        """Whether it is the first one on its connections."""
        self.outcome: Outcome | None = None
        self.reason = ""
        """Why it failed."""
        self.status = 0
        self.sent = 0
        self.received = 0
        server.write(self._server_http.send(examined.request) or b"")

    def step(self) -> bool:
        """Do what can be done now; whether something was."""
        if self.outcome is not None:
            return False
        # The response first: it may end the exchange.
        moved = self._move_response()
        return (self.outcome is None and self._move_request()) or moved

    @property
    def left_by_guest(self) -> bytes:
        """What the guest has sent after its request."""
        return self._guest_http.trailing_data[0]

    @property
    def left_by_server(self) -> bytes:
        """What the server has sent after its response."""
        return self._server_http.trailing_data[0]

    # From the guest to the server.

    def _move_request(self) -> bool:
        if self.request_ended or self._server.queued >= ROOM:
            return False
        try:
            event = self._guest_http.next_event()
        except h11.RemoteProtocolError:
            self._fail("the body of the request is malformed", status=400)
            return True
        if event is h11.NEED_DATA:
            return self._read_request()
        if isinstance(event, h11.Data):
            self.sent += len(event.data)
            self._server.write(self._server_http.send(event) or b"")
        elif isinstance(event, h11.EndOfMessage):
            self._server.write(self._server_http.send(h11.EndOfMessage()) or b"")
            self.request_ended = True
        return True

    def _read_request(self) -> bool:
        data = self._guest.read()
        if data:
            self._guest_http.receive_data(data)
            return True
        if self._guest.at_end:
            self._fail("the request was cut off", status=400)
            return True
        return False

    # From the server to the guest.

    def _move_response(self) -> bool:
        if self._guest.queued >= ROOM:
            return False
        try:
            event = self._server_http.next_event()
            if event is h11.NEED_DATA:
                return self._read_response()
            if isinstance(event, h11.InformationalResponse):
                self._inform(event)
            elif isinstance(event, h11.Response):
                self._respond(event)
            elif isinstance(event, h11.Data):
                self.received += len(event.data)
                self._to_guest(event)
            elif isinstance(event, h11.EndOfMessage):
                self._to_guest(h11.EndOfMessage())
                self._end()
            else:
                self._fail("the server closed the connection")
        except h11.RemoteProtocolError:
            self._fail("the server's response is not valid HTTP/1.1")
        return True

    def _read_response(self) -> bool:
        data = self._server.read()
        if data:
            self._server_http.receive_data(data)
            return True
        if self._server.at_end and not self._server_ended:
            self._server_ended = True
            if self._server.problem or not self._server.ended_properly:
                self._fail(self._server.problem or "the server cut the connection off")
            else:
                self._server_http.receive_data(b"")
            return True
        return False

    def _inform(self, event: h11.InformationalResponse) -> None:
        headers = event.headers.raw_items()
        key = self._examined.websocket_key
        if event.status_code == 101:
            if key is None or not is_accepted(key, headers):
                self._fail("the server switched to a protocol that is not WebSocket")
                return
            switching = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
            headers = response_headers(headers, self._secrets, close=False) + switching
            self.outcome = Outcome.SWITCHED
            self.status = 101
        else:
            self._interim += 1
            if self._interim > _INTERIM_RESPONSES_MAX:
                self._fail("the server sends too many interim responses")
                return
            headers = response_headers(headers, self._secrets, close=False)
        self._to_guest(
            h11.InformationalResponse(
                status_code=event.status_code, headers=headers, reason=self._reason_of(event)
            )
        )

    def _respond(self, event: h11.Response) -> None:
        self.status = event.status_code
        server_closes = self._server_http.their_state is h11.MUST_CLOSE or (
            event.http_version != b"1.1" or not self._server_keeps_open(event)
        )
        headers = response_headers(event.headers.raw_items(), self._secrets, close=server_closes)
        self._to_guest(
            h11.Response(
                status_code=event.status_code, headers=headers, reason=self._reason_of(event)
            )
        )

    def _reason_of(self, event: h11.Response | h11.InformationalResponse) -> bytes:
        ((_, reason),) = self._secrets.masked([(b"", bytes(event.reason))])
        return reason

    def _server_keeps_open(self, event: h11.Response) -> bool:
        values = dict(event.headers)
        options = {part.strip() for part in values.get(b"connection", b"").lower().split(b",")}
        if b"close" in options:
            return False
        has_no_body = self._examined.method == "HEAD" or event.status_code in (204, 304)
        return has_no_body or b"content-length" in values or b"transfer-encoding" in values

    def _to_guest(self, event: h11.Event) -> None:
        self._guest.write(self._guest_http.send(event) or b"")

    # The end.

    def _end(self) -> None:
        reusable = (
            self._guest_http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
            and self._server_http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
            and not self.left_by_server
        )
        self.outcome = Outcome.REUSABLE if reusable else Outcome.CLOSE

    def _fail(self, reason: str, *, status: int = 502) -> None:
        """End with a response of the bridge if none has begun."""
        self.reason = reason
        if self._guest_http.our_state is not h11.SEND_RESPONSE:
            self.outcome = Outcome.CUT_OFF
            return
        if self._server_ended and not self.is_first and not self._interim:
            # The server closed an idle connection while the request was on its way. Clients know
            # this case, and try again if they get no response.
            self.outcome = Outcome.CLOSE
            return
        self.status = status
        refusal = Refusal(status, f"{self._examined.method} {self._examined.path}: {reason}")
        is_head = self._examined.method == "HEAD"
        self._guest.write(response_to(refusal, self._guest_http, close=True, is_head=is_head))
        self.outcome = Outcome.CLOSE
