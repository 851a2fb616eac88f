"""Answers that are sent piece by piece, while they are made.

Owns `Streaming` and the form of server-sent events. Rules: the next piece is made when the
client has taken the last one, so a slow client slows its command, and not the server's
memory; when the client goes, the work is cancelled, and `finally` cleans up.
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
"""A comment, which readers of events skip."""

Result = TypeVar("Result")
Emit = Callable[[bytes], Awaitable[None]]


def event(name: str, value: object) -> bytes:
    """One server-sent event whose data is JSON on one line."""
    data = strict_json.encode(msgspec.to_builtins(value))
    return b"event: %s\ndata: %s\n" % (name.encode("ascii"), data)


class Streaming(Response):
    """An answer that `produce` makes by calling what it is given with each piece."""

    def __init__(
        self,
        produce: Callable[[Emit], Awaitable[None]],
        media_type: str,
        *,
        held: ExitStack,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`held` is closed when the answer has ended, however it does."""
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
                await unless_gone(work(), receive)


async def unless_gone(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """What `work` returns. When the client goes it is cancelled, and `ClientDisconnect` raised."""
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        watcher.cancel()
        task.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
