"""Passes a request to a server in a sandbox, and its response to the client.

Owns which headers are passed on. Rules: a guest is hostile. h11 parses its response, and refuses
malformed or long headers; this server frames the response anew, so nothing of it can pass for
another response. Bodies are streamed both ways and never held as a whole. A guest that does not
read the whole request is still heard: its response may say why. The server's token never reaches a
guest. Headers that would speak for every page of this server are dropped, and pages are
confined (`Content-Security-Policy: sandbox`), because the API has the same origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import h11
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from wasmsand.http.failures import ApiFailure
from wasmsand.http.relaying import GuestStream, Idle

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Names are in lower case."""

TOKEN_HEADER = b"x-wasmsand-token"
"""Has the server's token, if `Authorization` is for the guest."""
MAX_HEADER_BYTES = 64 * 1024
"""Longest header of a guest's response."""
_MAX_HEADERS = 200
_MAX_EARLY_RESPONSES = 8
"""Informational responses before the real one."""
_BETWEEN_HOPS = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers about one connection, not about the request."""
_NOT_SENT = frozenset(
    {
        TOKEN_HEADER,
        b"expect",
        b"forwarded",
        b"host",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-prefix",
        b"x-forwarded-proto",
        b"x-real-ip",
    }
)
_NOT_PASSED_BACK = frozenset(
    {
        b"alt-svc",
        b"clear-site-data",
        b"date",
        b"nel",
        b"public-key-pins",
        b"report-to",
        b"reporting-endpoints",
        b"service-worker-allowed",
        b"strict-transport-security",
    }
)
"""Headers that would change how browsers treat this whole server; and the date, which this server
adds itself."""
_CONFINED = (
    b"content-security-policy",
    b"sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads",
)


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """The head of a request for a guest."""

    method: bytes
    target: bytes
    headers: RawHeaders
    is_upgrade: bool

    def to_h11(self) -> h11.Request:
        """The request for h11. Raises `h11.LocalProtocolError` if it is malformed."""
        return h11.Request(method=self.method, target=self.target, headers=list(self.headers))


def request_for(
    method: str, target: bytes, headers: RawHeaders, *, port: int, prefix: bytes, scheme: str
) -> ProxiedRequest:
    """The request as the guest gets it. `prefix` is the path at which the client sees it."""
    named = _named_in_connection(headers)
    is_upgrade = asks_for(headers, b"websocket")
    dropped = _BETWEEN_HOPS | _NOT_SENT | named
    if not _values(headers, TOKEN_HEADER):
        dropped |= {b"authorization"}
    sent = [(b"host", b"localhost:%d" % port)]
    sent += [(name, value) for name, value in headers if name not in dropped]
    if b"chunked" in b",".join(_values(headers, b"transfer-encoding")).lower():
        sent.append((b"transfer-encoding", b"chunked"))
    for host in _values(headers, b"host")[:1]:
        sent.append((b"x-forwarded-host", host))
    sent.append((b"x-forwarded-proto", scheme.encode("ascii")))
    sent.append((b"x-forwarded-prefix", prefix))
    if is_upgrade:
        sent += [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    else:
        sent.append((b"connection", b"close"))
    return ProxiedRequest(method.encode("ascii"), target, sent, is_upgrade)


def asks_for(headers: RawHeaders, protocol: bytes) -> bool:
    """Whether a request asks to switch to `protocol`."""
    is_asked = b"upgrade" in _named_in_connection(headers)
    return is_asked and _values(headers, b"upgrade") == [protocol]


def response_headers(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """The headers of a guest's response that the client gets."""
    dropped = _BETWEEN_HOPS | _NOT_PASSED_BACK | _named_in_connection(headers)
    return [*((name, value) for name, value in headers if name not in dropped), _CONFINED]


def switching_headers(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """The headers of a guest's response 101 that the client gets."""
    passed = [pair for pair in response_headers(headers) if pair is not _CONFINED]
    return [*passed, (b"connection", b"Upgrade"), (b"upgrade", b"websocket")]


def _values(headers: RawHeaders, wanted: bytes) -> list[bytes]:
    return [value.strip().lower() for name, value in headers if name == wanted]


def _named_in_connection(headers: RawHeaders) -> frozenset[bytes]:
    """The headers that `Connection` says are about this connection only."""
    named = b",".join(_values(headers, b"connection")).split(b",")
    # A client must not have headers dropped that the exchange depends on.
    return frozenset(name.strip() for name in named) - {b"content-length", b"host", b""}


class ProxiedExchange:
    """One request and its response."""

    def __init__(self, guest: GuestStream, request: ProxiedRequest) -> None:
        self._guest = guest
        self._request = request
        self._h11 = h11.Connection(h11.CLIENT, MAX_HEADER_BYTES)
        self._guest_reads = True

    async def begin(self) -> None:
        """Send the head of the request. Raises `ApiFailure` if it is malformed."""
        try:
            head = self._h11.send(self._request.to_h11())
        except h11.LocalProtocolError as error:
            raise ApiFailure(400, "bad_request", f"cannot be passed on: {error}") from None
        await self._send(head or b"")

    async def follow_client(self, receive: Receive) -> None:
        """Pass the client's body on, and raise `ClientDisconnect` when the client leaves."""
        has_more = True
        while (message := await receive())["type"] != "http.disconnect":
            body = message.get("body", b"")
            try:
                if body and has_more:
                    await self._send(self._h11.send(h11.Data(data=body)) or b"")
                if not message.get("more_body", False) and has_more:
                    has_more = False
                    await self._send(self._h11.send(h11.EndOfMessage()) or b"")
            except h11.LocalProtocolError:
                has_more = False  # the guest's response may say why
        raise ClientDisconnect

    async def _send(self, data: bytes) -> None:
        """Send data, unless the guest reads no more."""
        try:
            if data and self._guest_reads:
                await self._guest.write(data)
        except OSError:
            self._guest_reads = False

    async def response(self) -> h11.Response | h11.InformationalResponse:
        """The head of the response: the final one, or the switch of protocols. Raises
        `ApiFailure`."""
        for _ in range(_MAX_EARLY_RESPONSES):
            event = await self._next()
            if isinstance(event, h11.Response):
                if event.status_code > 599:
                    raise _bad_gateway(f"sent the status {event.status_code}")
                return self._checked(event)
            if isinstance(event, h11.InformationalResponse):
                if event.status_code == 101:
                    if not self._request.is_upgrade:
                        raise _bad_gateway("switched protocols without being asked")
                    return self._checked(event)
                continue
            raise _bad_gateway("sent no response")
        raise _bad_gateway("sent too many informational responses")

    @staticmethod
    def _checked(
        event: h11.Response | h11.InformationalResponse,
    ) -> h11.Response | h11.InformationalResponse:
        headers = list(event.headers)
        if len(headers) > _MAX_HEADERS:
            raise _bad_gateway(f"sent more than {_MAX_HEADERS} headers")
        if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
            raise _bad_gateway(f"sent more than {MAX_HEADER_BYTES} bytes of headers")
        return event

    async def download(self, response: h11.Response, send: Send) -> None:
        """Pass the response on. Raises `ApiFailure` if its body is broken."""
        await send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": response_headers(list(response.headers)),
            }
        )
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise _bad_gateway("ended its response early")
            await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def left_over(self) -> bytes:
        """After a switch of protocols: what the guest has already sent."""
        return self._h11.trailing_data[0]

    async def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event of the guest's response, never NEED_DATA. Raises `ApiFailure`."""
        while True:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as error:
                raise _bad_gateway(f"sent an invalid response: {error}") from None
            if event is not h11.NEED_DATA:
                return event
            try:
                data = await self._guest.read()
            except Idle:
                raise ApiFailure(
                    504, "port_timeout", "the server in the sandbox sends nothing"
                ) from None
            except OSError:
                raise _bad_gateway("reset the connection") from None
            self._h11.receive_data(data)


def _bad_gateway(what: str) -> ApiFailure:
    return ApiFailure(502, "bad_gateway", f"the server in the sandbox {what}")
