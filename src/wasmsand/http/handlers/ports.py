"""Servers in a sandbox: which there are, requests to them, and streams."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wasmsand.http.client_ports import TUNNEL_PROTOCOL
from wasmsand.http.failures import ApiFailure
from wasmsand.http.handlers.started import LONGEST_WAIT_MS
from wasmsand.http.port_messages import PortList, PortState, WaitPort
from wasmsand.http.proxying import (
    ProxiedExchange,
    RawHeaders,
    asks_for,
    request_for,
    switching_headers,
)
from wasmsand.http.relaying import GuestStream, relay
from wasmsand.http.responses import failure_response
from wasmsand.http.routing import Call
from wasmsand.http.service import Service
from wasmsand.serving.connections import ClientConnection, connection_of
from wasmsand.serving.switched import Switched

Result = TypeVar("Result")

_CONNECT_SECONDS = 5.0
_PREFIX_PARTS = 6
"""Parts of the path `/v1/sandboxes/ID/ports/PORT`, with the empty one before the first slash."""


async def listing(call: Call[None, None]) -> PortList:
    """`GET /v1/sandboxes/{sandbox}/listening`"""
    return PortList(ports=await call.in_file_thread(call.entry.sandbox.backend.listening_ports))


async def wait(call: Call[WaitPort, None]) -> PortState:
    """`GET /v1/sandboxes/{sandbox}/listening/{port}`"""
    port = _port(call)
    seconds = min(call.query.wait_ms, LONGEST_WAIT_MS) / 1000
    backend = call.entry.sandbox.backend
    with call.running_command():
        listens = await call.in_command_thread(partial(backend.wait_port, port, seconds), seconds)
    return PortState(port=port, listens=listens)


async def proxy(call: Call[None, None]) -> Response:
    """`ANY /v1/sandboxes/{sandbox}/ports/{port}/{path}`"""
    port = _port(call)
    prefix, target = _split_target(call.request)
    request = request_for(
        call.request.method,
        target,
        call.request.scope["headers"],
        port=port,
        prefix=prefix,
        scheme=call.request.url.scheme,
    )
    with ExitStack() as held:
        guest = await _connect(call, port, held)
        exchange = ProxiedExchange(guest, request)
        await exchange.begin()
        return Proxied(call.service, guest, exchange, held.pop_all())


async def tunnel(call: Call[None, None]) -> Response:
    """`POST /v1/sandboxes/{sandbox}/tunnels/{port}`"""
    port = _port(call)
    if not asks_for(call.request.scope["headers"], TUNNEL_PROTOCOL.encode("ascii")):
        raise ApiFailure(
            426,
            "upgrade_required",
            f"send `Connection: Upgrade` and `Upgrade: {TUNNEL_PROTOCOL}`",
        )
    with ExitStack() as held:
        guest = await _connect(call, port, held)
        return Tunnelled(call.service, guest, held.pop_all())


def _port(call: Call[Any, None]) -> int:
    word = call.part("port")
    if not (word.isascii() and word.isdecimal() and len(word) <= 5 and 0 < int(word) < 65536):
        raise ApiFailure(400, "invalid_value", f"port must be from 1 to 65535, not {word[:16]!r}")
    return int(word)


def _split_target(request: Request) -> tuple[bytes, bytes]:
    """The path to the port, and the rest of the target, both exactly as the client sent them."""
    raw: bytes = request.scope["raw_path"]
    parts = raw.split(b"/", _PREFIX_PARTS)
    prefix = b"/".join(parts[:_PREFIX_PARTS])
    names = (request.path_params["sandbox"], request.path_params["port"])
    expected = "/v1/sandboxes/{}/ports/{}".format(*names).encode("utf-8", "surrogateescape")
    if unquote_to_bytes(prefix) != expected:
        raise ApiFailure(400, "bad_request", "slashes before the port must not be encoded")
    target = b"/" + (parts[_PREFIX_PARTS] if len(parts) > _PREFIX_PARTS else b"")
    query: bytes = request.scope["query_string"]
    return prefix, target + b"?" + query if query else target


async def _connect(call: Call[None, None], port: int, held: ExitStack) -> GuestStream:
    """A connection to the guest, which is counted and closed with `held`."""
    held.enter_context(call.service.port_connection(call.owner))
    held.enter_context(call.service.registry.use(call.entry))
    backend = call.entry.sandbox.backend
    connection = await call.in_file_thread(partial(backend.connect_port, port, _CONNECT_SECONDS))
    guest = GuestStream(connection, call.service.settings.port_idle_seconds)
    held.callback(guest.close)
    return guest


class _Streamed(Response):
    """A response that is not sent at once."""

    def __init__(self, service: Service, guest: GuestStream, held: ExitStack) -> None:
        """`held` is closed when the response has ended."""
        self.status_code = 200
        self.background = None
        self.raw_headers = []
        self._service = service
        self._guest = guest
        self._held = held

    async def _fail(self, failure: ApiFailure, scope: Scope, receive: Receive, send: Send) -> None:
        await failure_response(self._service, failure)(scope, receive, send)


class Proxied(_Streamed):
    """The response of a server in a sandbox."""

    def __init__(
        self, service: Service, guest: GuestStream, exchange: ProxiedExchange, held: ExitStack
    ) -> None:
        super().__init__(service, guest, held)
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False
        client = asyncio.create_task(self._exchange.follow_client(receive))
        with self._held:
            try:
                response = await _unless_ended(client, self._exchange.response())
                began = True
                if isinstance(response, h11.Response):
                    await _unless_ended(client, self._exchange.download(response, send))
                    return
                await _end(client)
                await self._go_on_switched(scope, list(response.headers))
            except ClientDisconnect:
                pass
            except ApiFailure as failure:
                await _end(client)
                if not began:
                    await self._fail(failure, scope, receive, send)
                else:
                    await _break_off(scope, receive)
            finally:
                await _end(client)

    async def _go_on_switched(self, scope: Scope, headers: RawHeaders) -> None:
        connection = connection_of(scope)
        assert connection is not None
        switched = _switch(connection, switching_headers(headers))
        await relay(switched, self._guest, self._exchange.left_over())


class Tunnelled(_Streamed):
    """A stream to a server in a sandbox."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            connection = connection_of(scope)
            assert connection is not None
            upgrade = (b"upgrade", TUNNEL_PROTOCOL.encode("ascii"))
            try:
                switched = _switch(connection, [(b"connection", b"Upgrade"), upgrade])
            except ApiFailure as failure:
                await self._fail(failure, scope, receive, send)
                return
            await relay(switched, self._guest)


async def _unless_ended(client: asyncio.Task[None], work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`. If the client leaves first, cancels it and raises
    `ClientDisconnect`."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({client, task}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        await _end(task)


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _switch(connection: ClientConnection, headers: list[tuple[bytes, bytes]]) -> Switched:
    try:
        return connection.switch(headers)
    except h11.LocalProtocolError:
        raise ApiFailure(
            400, "bad_request", "the request cannot switch protocols: it has a body"
        ) from None


async def _break_off(scope: Scope, receive: Receive) -> None:
    """Close the client's connection, so that it notices that the response is incomplete."""
    connection = connection_of(scope)
    assert connection is not None
    connection.drop()
    while (await receive())["type"] != "http.disconnect":
        pass
