"""One request and its response, over a connection to a worker.

Owns `forward`, which passes a request on and its response back, and `fetch`, which takes the whole
response. Rules: bodies are streamed both ways and never held as a whole. If the client leaves, the
worker's connection is closed, and so the worker gives the request up. If the worker dies before it
has begun to answer, the caller learns it (`WorkerLost`); after that, the client's connection is
closed, so that the client notices that the response is incomplete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import h11
import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from wasmsand.http.failures import ApiFailure
from wasmsand.http.relaying import until_all_end_or_one_fails
from wasmsand.http.workers.frames import (
    BODY,
    END,
    LAST,
    REQUEST,
    START,
    SWITCH,
    FrameConnection,
    Lost,
    RawHeaders,
    RequestHead,
    ResponseHead,
    body_frames,
    frame,
)
from wasmsand.http.workers.slot import Slot, WorkerLost
from wasmsand.serving.connections import BoundedConnection
from wasmsand.serving.switched import Switched

_FETCHED_MAX: Final = 256 << 20
_HEADERS_MAX: Final = 256
_END_SECONDS: Final = 5.0


def head_of(scope: Scope, owner: str, dropped: frozenset[bytes]) -> RequestHead:
    """The head of a request for a worker, without the headers that are `dropped`."""
    headers: RawHeaders = [pair for pair in scope["headers"] if pair[0] not in dropped]
    has_body = any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" 0"))
        for name, value in headers
    )
    return RequestHead(
        method=scope["method"],
        path=scope["path"],
        raw_path=scope["raw_path"],
        query=scope["query_string"],
        headers=headers,
        owner=owner,
        has_body=has_body,
        scheme=scope["scheme"],
    )


async def forward(
    slot: Slot,
    head: RequestHead,
    client: BoundedConnection,
    receive: Receive,
    send: Send,
    *,
    body: bytes | None = None,
    closes: Callable[[], bool] = lambda: False,
) -> int:
    """Forward a request, and return the status of the response. `body` was received already;
    `closes`: whether the client is told to close its connection. Raises `WorkerLost`, `ApiFailure`,
    `ClientDisconnect`."""
    async with slot.connection() as worker:
        client.on_lost = worker.close
        upload: asyncio.Task[None] | None = None
        try:
            begin = frame(REQUEST, msgspec.msgpack.encode(head))
            if head.has_body and body is not None:
                worker.write(begin + body_frames(body) + frame(END))
                await worker.drain()
            elif head.has_body:
                # One write for both, unless the worker would have to wait for the body.
                if not client.has_input:
                    worker.write(begin)
                    begin = b""
                if await _upload_piece(worker, receive, begin):
                    upload = asyncio.create_task(_upload(worker, receive))
            else:
                worker.write(begin)
            try:
                kind, payload = await worker.next()
                if kind not in (START, SWITCH):
                    raise Lost
                answer = msgspec.msgpack.decode(payload, type=ResponseHead)
            except (Lost, msgspec.DecodeError):
                worker.close()
                if client.transport.is_closing():
                    raise ClientDisconnect from None
                raise WorkerLost from None
            if kind == SWITCH:
                await _go_on_switched(worker, client, answer.headers)
                return 101
            headers = answer.headers[:_HEADERS_MAX]
            if closes():
                headers = [*headers, (b"connection", b"close")]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await _download(worker, client, receive, send)
            client.on_lost = None
            if (upload is None or upload.done()) and await _is_at_end(worker):
                slot.keep(worker)
            return answer.status
        finally:
            client.on_lost = None
            if upload is not None:
                upload.cancel()
                await asyncio.gather(upload, return_exceptions=True)


async def _is_at_end(worker: FrameConnection) -> bool:
    """Whether the worker lets the connection be used again. It follows the response at once."""
    try:
        if worker.has_frames:
            return (await worker.next())[0] == END
        async with asyncio.timeout(_END_SECONDS):
            return (await worker.next())[0] == END
    except (Lost, TimeoutError):
        return False


async def _upload_piece(worker: FrameConnection, receive: Receive, begin: bytes = b"") -> bool:
    """Pass a piece of the body on, after `begin`; whether there is more."""
    message = await receive()
    if message["type"] == "http.disconnect":
        worker.close()
        return False
    data, more = begin + body_frames(message.get("body", b"")), message.get("more_body", False)
    worker.write(data if more else data + frame(END))
    await worker.drain()
    return bool(more)


async def _upload(worker: FrameConnection, receive: Receive) -> None:
    while await _upload_piece(worker, receive):
        pass


async def _download(
    worker: FrameConnection, client: BoundedConnection, receive: Receive, send: Send
) -> None:
    """Pass the body of the response on. Raises `ClientDisconnect` if it is incomplete."""
    while True:
        try:
            kind, payload = await worker.next()
        except Lost:
            kind, payload = 0, b""
        if kind == BODY:
            await send({"type": "http.response.body", "body": payload, "more_body": True})
        elif kind == LAST:
            await send({"type": "http.response.body", "body": payload, "more_body": False})
            return
        else:
            worker.close()
            client.drop()
            while (await receive())["type"] != "http.disconnect":
                pass  # uvicorn reports a response that ends before its connection
            raise ClientDisconnect


async def _go_on_switched(
    worker: FrameConnection, client: BoundedConnection, headers: RawHeaders
) -> None:
    try:
        outer = client.switch(headers)
    except h11.LocalProtocolError:
        worker.close()
        raise ApiFailure(
            400, "bad_request", "the request cannot switch protocols: it has a body"
        ) from None
    inner = worker.switch()
    if client.transport.is_closing():
        inner.close()
    try:
        await until_all_end_or_one_fails(_copy(outer, inner), _copy(inner, outer))
    finally:
        outer.close()
        inner.close()


async def _copy(source: Switched, target: Switched) -> None:
    while data := await source.read():
        await target.write(data)
    target.finish()


async def fetch(slot: Slot, head: RequestHead) -> tuple[ResponseHead, bytes]:
    """The whole response to a request without a body. Raises `WorkerLost`, `ApiFailure`."""
    async with slot.connection() as worker:
        worker.write(frame(REQUEST, msgspec.msgpack.encode(head)))
        try:
            kind, payload = await worker.next()
            if kind != START:
                raise Lost
            answer = msgspec.msgpack.decode(payload, type=ResponseHead)
            pieces, size = [], 0
            kind = BODY
            while kind == BODY:
                kind, piece = await worker.next()
                pieces.append(piece)
                size += len(piece)
                if size > _FETCHED_MAX:
                    raise Lost
        except (Lost, msgspec.DecodeError):
            raise WorkerLost from None
        if kind != LAST:
            raise WorkerLost
        if await _is_at_end(worker):
            slot.keep(worker)
        return answer, b"".join(pieces)
