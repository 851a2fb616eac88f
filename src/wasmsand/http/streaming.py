"""Responses that are sent while they are produced.

Owns `Streaming` and the format of server-sent events. Rules: the next piece is produced when
the connection has accepted the last one, so a slow client slows its command down instead of
filling the server's memory; when the client disconnects, the work is cancelled, and `finally`
cleans up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wasmsand.wire import strict_json

EVENT_STREAM = "text/event-stream"
HEARTBEAT = b": still running\n\n"
"""A comment, which clients skip."""

Result = TypeVar("Result")
Emit = Callable[[bytes], Awaitable[None]]


def event(name: str, value: object) -> bytes:
    """One server-sent event whose data is JSON on one line."""
    data = strict_json.encode(msgspec.to_builtins(value))
    return b"event: %s\ndata: %s\n" % (name.encode("ascii"), data)


class Streaming(Response):
    """A response whose pieces `produce` passes to the function that it is given."""

    def __init__(
        self,
        produce: Callable[[Emit], Awaitable[None]],
        media_type: str,
        *,
        held: ExitStack,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`held` is closed when the response has ended or failed."""
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self._produce = produce
        self._held = held
        self.init_headers({"Cache-Control": "no-store", **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def emit(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        async def work() -> None:
            await self._produce(emit)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        with self._held:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            with suppress(ClientDisconnect):
                await unless_disconnected(work(), receive)


async def unless_disconnected(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """The result of `work`. If the client disconnects, cancels it and raises
    `ClientDisconnect`."""
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        watcher.cancel()
        task.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
