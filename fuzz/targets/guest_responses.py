"""Responses of hostile servers in sandboxes, as `wasmsand serve` passes them on.

An input is what the server sends; its first byte chooses the request, the second one the size of
the pieces in which the response arrives. Rules: the response is refused with `ApiFailure`, or the
client gets exactly one well-formed response, without the headers that are not passed back, and
nothing after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, cast

import h11

from fuzz.target import Finding, Target
from wasmsand.http.failures import ApiFailure
from wasmsand.http.proxying import ProxiedExchange, ProxiedRequest, request_for, switching_headers
from wasmsand.http.relaying import GuestStream

_REQUESTS: Final = ((b"GET", False), (b"HEAD", False), (b"POST", False), (b"GET", True))
_FORBIDDEN: Final = frozenset(
    {b"strict-transport-security", b"clear-site-data", b"service-worker-allowed", b"trailer"}
)
_WORDS: Final = (
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 101 Switching Protocols\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n", b"HTTP/1.1 999 X\r\n",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: X, close\r\n",
    b"Upgrade: websocket\r\n", b"Connection: Upgrade\r\n", b"X: y\r\n", b"\r\n", b"\n", b"\r",
    b"0\r\n\r\n", b"5\r\nhello\r\n", b"ffffffffffffffff\r\n", b" folded\r\n", b"\0",
    b"Set-Cookie: a=b\r\n",
    b"Strict-Transport-Security: max-age=1\r\n", b"Trailer: X\r\n", b"Content-Length: 0\r\n", b":",
)  # fmt: skip


class _Guest:
    """A connection on which a given response arrives."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self._size = size
        self._place = 0

    async def read(self) -> bytes:
        piece = self._data[self._place : self._place + self._size]
        self._place += len(piece)
        return piece

    async def write(self, data: bytes) -> None:
        pass


def _request(kind: int) -> ProxiedRequest:
    method, is_upgrade = _REQUESTS[kind % len(_REQUESTS)]
    headers = [(b"host", b"server")]
    if is_upgrade:
        headers += [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    if method == b"POST":
        headers.append((b"content-length", b"0"))
    return request_for(method.decode(), b"/", headers, port=8000, prefix=b"/p", scheme="http")


class GuestResponses(Target):
    """See above."""

    name = "proxy"
    about = "responses of servers in sandboxes that `wasmsand serve` passes on"
    words = _WORDS

    def seeds(self) -> Iterable[bytes]:
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        for kind in range(len(_REQUESTS)):
            yield bytes([kind, 255]) + ok
        yield b"\0\3HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        yield b"\0\1HTTP/1.0 200 OK\r\nSet-Cookie: a=b\r\n\r\nuntil the end"
        yield b"\3\xffHTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\0"
        yield b"\0\xffHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + ok
        yield b"\0\xff" + ok + ok

    def run(self, data: bytes) -> None:
        kind, size = (data[0], data[1]) if len(data) > 1 else (0, 255)
        request = _request(kind)
        guest = _Guest(data[2:], size + 1)
        exchange = ProxiedExchange(cast("GuestStream", guest), request)
        try:
            asyncio.run(_exchange(exchange, request))
        except ApiFailure as failure:
            if failure.status not in (502, 504):
                raise Finding("status", f"{failure.status}: {failure}") from failure


async def _exchange(exchange: ProxiedExchange, request: ProxiedRequest) -> None:
    await exchange.begin()
    client = h11.Connection(h11.CLIENT)
    server = h11.Connection(h11.SERVER)
    method = request.method
    names = [(b"host", b"s")]
    if request.is_upgrade:
        names += [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
    server.receive_data(client.send(h11.Request(method=method, target=b"/", headers=names)) or b"")
    server.receive_data(client.send(h11.EndOfMessage()) or b"")
    while not isinstance(server.next_event(), h11.EndOfMessage):
        pass
    sent: list[bytes] = []
    response = await exchange.response()
    if isinstance(response, h11.InformationalResponse):
        headers = switching_headers(list(response.headers))
        answer = h11.InformationalResponse(status_code=101, headers=headers, reason=b"")
        _check_one(client, server.send(answer) or b"", switches=True)
        return

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            event: Any = h11.Response(status_code=message["status"], headers=message["headers"])
            sent.append(server.send(event) or b"")
            return
        body = b"" if method == b"HEAD" else message["body"]
        try:
            sent.append(server.send(h11.Data(data=body)) or b"")
            if not message["more_body"]:
                sent.append(server.send(h11.EndOfMessage()) or b"")
        except h11.LocalProtocolError as error:
            raise Finding("framing", str(error)) from error

    await exchange.download(response, send)
    _check_one(client, b"".join(sent), switches=False)


def _check_one(client: h11.Connection, output: bytes, *, switches: bool) -> None:
    """What the client gets must be one response."""
    client.receive_data(output)
    client.receive_data(b"")
    responses, ends = 0, 0
    while True:
        event = client.next_event()
        if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
            break
        if isinstance(event, h11.Response | h11.InformationalResponse):
            responses += 1
            found = {name for name, _ in event.headers} & _FORBIDDEN
            if found:
                raise Finding("header", f"{sorted(found)} was passed back")
        ends += isinstance(event, h11.EndOfMessage)
    left, _ = client.trailing_data
    if (responses, ends) != (1, 0 if switches else 1) or left.strip():
        raise Finding("responses", f"{responses} responses, {ends} ends, {left[:50]!r} after them")
