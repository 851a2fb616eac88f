"""The requests of a guest's connection, each made by the host.

Owns `PageConversation`, `PageExchange` and `Requests`. Rules: a request's body is collected before
the host gets the request, within a limit of the sandbox. A response's body is asked for piece by
piece, when the guest has taken the last one. What the host says of lengths is not trusted: h11
frames the response for the guest anew.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Final, Protocol

import h11

from wasmsand.machine.network.inspecting.conversation import Conversation
from wasmsand.machine.network.inspecting.examination import Examined, response_headers
from wasmsand.machine.network.inspecting.exchange import RESPONSE_HEAD_MAX, ROOM, Outcome
from wasmsand.machine.network.inspecting.order import RequestOrder
from wasmsand.machine.network.inspecting.refusals import Refusal, response_to
from wasmsand.machine.network.inspecting.secrets import Secrets
from wasmsand.machine.network.inspecting.transports import Plain, Transport
from wasmsand.web.network.bridge import Receiver

_NOT_PASSED_ON: Final = frozenset((b"transfer-encoding", b"trailer"))
_OF_CONNECTION: Final = frozenset(
    (b"connection", b"content-length", b"expect", b"transfer-encoding")
)


class Requests(Protocol):
    """What an exchange needs of its connection."""

    def start(self, receiver: Receiver, method: str, url: str, headers: str, body: bytes) -> int:
        """Make a request; `headers` is a JSON array of pairs. The receiver gets the events `head`
        (a JSON object), `data`, `end`, and `fail` (with the reason)."""

    def more(self, number: int) -> None:
        """Ask for the next piece of the response's body."""

    def stop(self, number: int) -> None:
        """The request is over."""

    def came(self, count: int) -> None:
        """Something came, with so many bytes: go on."""

    def keep_body(self, size: int) -> bool:
        """Count bytes of a request's body; False if there is no room."""

    def drop_body(self, size: int) -> None:
        """Those bytes are no longer kept."""

    def may_use(self, address: str) -> bool:
        """Whether the host may connect to this address."""


class PageConversation(Conversation):
    """HTTP between a guest and the host's `fetch`."""

    def __init__(
        self, order: RequestOrder, guest: Transport, requests: Requests, *, secure: bool
    ) -> None:
        super().__init__(order, guest, Plain(), secure=secure)
        self._origin = f"{'https' if secure else 'http'}://{order.authority_in_urls}"
        self._requests = requests

    @property
    def problem(self) -> str:
        """Why it was cut off, if it was."""
        return "" if self._exchange is None else self._exchange.reason

    def _new_exchange(self, http: h11.Connection, examined: Examined) -> PageExchange:
        return PageExchange(
            http, examined, self._secrets, self._guest, self._requests, self._origin
        )

    def abandon(self, reason: str) -> None:
        """See `Conversation`: also stops the request of the host."""
        exchange = self._exchange
        super().abandon(reason)
        if isinstance(exchange, PageExchange):
            exchange.stop()


class PageExchange:
    """One request of a guest, and what the host answers: an `AnyExchange`."""

    def __init__(
        self,
        guest_http: h11.Connection,
        examined: Examined,
        secrets: Secrets,
        guest: Transport,
        requests: Requests,
        origin: str,
    ) -> None:
        self._guest_http = guest_http
        self._examined = examined
        self._secrets = secrets
        self._guest = guest
        self._requests = requests
        self._origin = origin
        self._body = bytearray()
        self._number: int | None = None
        self._head: str | None = None
        self._pieces: deque[bytes] = deque()
        self._is_asked = False
        self._has_answered = False
        self._is_complete = False
        self._failure: str | None = None
        self.request_ended = False
        self.outcome: Outcome | None = None
        self.reason = ""
        self.status = 0
        self.sent = 0
        self.received = 0
        if guest_http.they_are_waiting_for_100_continue:
            self._to_guest(h11.InformationalResponse(status_code=100, headers=[]))

    left_by_server: bytes = b""

    @property
    def left_by_guest(self) -> bytes:
        """What the guest has sent after its request."""
        return self._guest_http.trailing_data[0]

    def step(self) -> bool:
        """See `AnyExchange`."""
        if self.outcome is not None:
            return False
        moved = self._move_response() if self.request_ended else self._move_request()
        if self.outcome is not None:
            self.stop()
        return moved

    def stop(self) -> None:
        """The exchange is over, or given up."""
        self._drop_body()
        number, self._number = self._number, None
        if number is not None:
            self._requests.stop(number)

    # The request.

    def _move_request(self) -> bool:
        try:
            event = self._guest_http.next_event()
        except h11.RemoteProtocolError:
            self._fail("the body of the request is malformed", status=400)
            return True
        if event is h11.NEED_DATA:
            return self._read_request()
        if isinstance(event, h11.Data):
            if self._requests.keep_body(len(event.data)):
                self._body += event.data
                self.sent += len(event.data)
            else:
                self._fail("the bodies of the sandbox's requests are too large", status=413)
        elif isinstance(event, h11.EndOfMessage):
            self.request_ended = True
            self._start()
        return True

    def _read_request(self) -> bool:
        data = self._guest.read()
        if data:
            self._guest_http.receive_data(data)
        elif self._guest.at_end:
            self._fail("the request was cut off", status=400)
        return bool(data) or self.outcome is not None

    def _start(self) -> None:
        request = self._examined.request
        if self._examined.websocket_key is not None:
            self._fail("a page cannot pass WebSockets on", status=501)
            return
        target = request.target.decode("ascii")
        if not target.startswith("/"):
            self._fail("a page can only ask for paths", status=501)
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.headers.raw_items()
            if name.lower() not in _OF_CONNECTION
        ]
        url = self._origin + target
        self._number = self._requests.start(
            self, self._examined.method, url, json.dumps(headers), bytes(self._body)
        )
        self._drop_body()  # the host has it now

    def _drop_body(self) -> None:
        self._requests.drop_body(len(self._body))
        self._body.clear()

    # What the host says.

    def hear(self, event: str, text: str, data: bytes) -> None:
        """See `Receiver`."""
        if event == "head":
            self._head = text
        elif event == "data":
            self._is_asked = False
            self._pieces.append(data)
        elif event == "end":
            self._is_complete = True
        else:
            self._failure = text
        self._requests.came(len(data))

    def may_use(self, address: str) -> bool:
        """Whether the host may connect to this address."""
        return self._requests.may_use(address)

    # The response.

    def _move_response(self) -> bool:
        if self._guest.queued >= ROOM:
            return False
        try:
            return self._respond()
        except h11.LocalProtocolError:  # a malformed header, or another length than it says
            self._fail("the response of the host is malformed")
            return True

    def _respond(self) -> bool:
        if self._head is not None:
            self._to_guest(self._response(self._head))
            self._head = None
            self._has_answered = True
        elif self._pieces:
            piece = self._pieces.popleft()
            self.received += len(piece)
            self._to_guest(h11.Data(data=piece))
        elif self._failure is not None:
            self._fail(self._failure)
        elif self._is_complete:
            self._to_guest(h11.EndOfMessage())
            done = {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
            reusable = self._guest_http.states == done
            self.outcome = Outcome.REUSABLE if reusable else Outcome.CLOSE
        else:
            if self._has_answered and not self._is_asked and self._number is not None:
                self._is_asked = True
                self._requests.more(self._number)
            return False
        return True

    def _response(self, head: str) -> h11.Response:
        answer = json.loads(head)
        if len(head) > RESPONSE_HEAD_MAX or not 200 <= answer["status"] <= 599:
            raise h11.LocalProtocolError("not a response")
        self.status = answer["status"]
        headers = [
            (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in answer["headers"]
        ]
        passed_on = response_headers(headers, self._secrets, close=False)
        ((_, reason),) = self._secrets.masked([(b"", answer["reason"].encode("ascii", "replace"))])
        return h11.Response(
            status_code=self.status,
            headers=[pair for pair in passed_on if pair[0].lower() not in _NOT_PASSED_ON],
            reason=reason,
        )

    def _to_guest(self, event: h11.Event) -> None:
        self._guest.write(self._guest_http.send(event) or b"")

    def _fail(self, reason: str, *, status: int = 502) -> None:
        """End with a response of the bridge if none has begun."""
        self.reason = reason
        if self._guest_http.our_state is not h11.SEND_RESPONSE:
            self.outcome = Outcome.CUT_OFF
            return
        self.status = status
        refusal = Refusal(status, f"{self._examined.method} {self._examined.path}: {reason}")
        is_head = self._examined.method == "HEAD"
        self._guest.write(response_to(refusal, self._guest_http, close=True, is_head=is_head))
        self.outcome = Outcome.CLOSE
