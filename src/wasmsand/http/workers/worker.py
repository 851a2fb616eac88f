"""A worker: the server's application, behind frames instead of HTTP.

Owns `Worker`, the end of all connections to the front process. Rules: the front process has
authenticated and admitted every request, and says whose it is. Connections arrive as descriptors
over one socket; its end is the end of the worker, which then stores and kills its sandboxes.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from typing import Any, Final

import h11
import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Scope

from wasmsand.http.app import application
from wasmsand.http.routes import ROUTES
from wasmsand.http.service import Service, log
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import ANYBODY, PUBLIC, SERVER, Token
from wasmsand.http.workers.channel import Caller
from wasmsand.http.workers.frames import (
    ANSWER,
    ASK,
    BODY,
    END,
    REQUEST,
    ROOM,
    START,
    SWITCH,
    FrameConnection,
    Lost,
    RequestHead,
    ResponseHead,
    body_frames,
    frame,
)
from wasmsand.http.workers.worker_quotas import WorkerQuotas
from wasmsand.http.workers.worker_store import WorkerStore
from wasmsand.serving.connections import STATE_KEY
from wasmsand.serving.switched import Switched

_OWNER: Final = "wasmsand_owner"
_TOKENS: Final = b"tokens"


class Worker:
    """One worker process."""

    def __init__(self, settings: Settings, ledger: socket.socket, store: socket.socket) -> None:
        self._ledger = Caller(ledger)
        self.service = Service(
            settings,
            quotas=WorkerQuotas(settings.max_sandboxes, self._ledger),
            shared_store=None if settings.store is None else WorkerStore(Caller(store)),
        )
        self._app: ASGIApp = application(self.service, ROUTES, self._identify)
        self._tasks: set[asyncio.Task[None]] = set()

    def _identify(self, request: Request) -> Token:
        name, tokens = request.scope[_OWNER], self.service.tokens
        for known in (PUBLIC, SERVER):
            if name == known.name:
                return known
        found = ANYBODY if tokens.is_open else tokens.named(name)
        assert found is not None, "the front process and the worker have the same tokens"
        return found

    async def run(self, link: socket.socket, barriers: tuple[str, ...]) -> None:
        """Serve until the front process closes `link`."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        link.setblocking(False)

        def readable() -> None:
            try:
                data, descriptors, _, _ = socket.recv_fds(link, 1, 1)
            except BlockingIOError:
                return
            except OSError:
                data, descriptors = b"", []
            for descriptor in descriptors:
                self._start(self._serve(socket.socket(fileno=descriptor)))
            if not data:
                loop.remove_reader(link)
                ended.set()

        async with self.service.running():
            loop.add_reader(link, readable)
            await asyncio.to_thread(self._ledger.call, "ready", barriers=list(barriers))
            await ended.wait()
            self.service.draining = True
        for task in list(self._tasks):
            task.cancel()

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(FrameConnection, sock=connected)
        try:
            while True:
                kind, payload = await connection.next()
                if kind == ASK:
                    connection.write(frame(ANSWER, await self._told(payload)))
                elif kind != REQUEST or not await self._answer(connection, payload):
                    return
        except (Lost, msgspec.DecodeError):
            pass
        finally:
            connection.close()

    async def _told(self, payload: bytes) -> bytes:
        """What the front process tells: "ping"; "drain", when running requests have to end;
        "tokens", when there are other tokens; "room", when an idle sandbox has to be paused."""
        if payload == b"drain":
            await self.service.kill_all()
        elif payload.startswith(_TOKENS):
            self.service.tokens.replace(pickle.loads(payload[len(_TOKENS) :]))
        elif payload.startswith(ROOM.encode()) and self.service.keeping is not None:
            _, wanted, owner = payload.decode().split(" ")
            if await self.service.keeping.make_room(owner, others=wanted == "others"):
                return b"paused"
        return b""

    async def _answer(self, connection: FrameConnection, payload: bytes) -> bool:
        """Answer a request; whether the connection can be used again."""
        head = msgspec.msgpack.decode(payload, type=RequestHead)
        exchange = _Exchange(connection, head)
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception as error:
            log.error("bug in %s %s", head.method, head.path[:200], exc_info=error)
        return await exchange.end()


class _Exchange:
    """One request, as ASGI sees it; and its connection, as handlers see it."""

    def __init__(self, connection: FrameConnection, head: RequestHead) -> None:
        self._connection = connection
        self._head = head
        self._unread = head.has_body
        self._told_end = False
        self._unsent = b""
        self._is_complete = False
        self._is_switched = False
        self.scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": None,
            "client": None,
            "scheme": head.scheme,
            "method": head.method,
            "root_path": "",
            "path": head.path,
            "raw_path": head.raw_path,
            "query_string": head.query,
            "headers": head.headers,
            "state": {STATE_KEY: self},
            _OWNER: head.owner,
        }

    async def receive(self) -> Message:
        """See ASGI."""
        if self._unread:
            try:
                kind, payload = await self._connection.next()
            except Lost:
                return {"type": "http.disconnect"}
            if kind == BODY:
                return {"type": "http.request", "body": payload, "more_body": True}
            self._unread = False
        if not self._told_end:
            self._told_end = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._connection.wait_lost()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """See ASGI."""
        if message["type"] == "http.response.start":
            head = ResponseHead(message["status"], list(message["headers"]))
            self._unsent = frame(START, msgspec.msgpack.encode(head))
            # A short response is sent as a whole; a stream must not wait for its first output.
            asyncio.get_running_loop().call_soon(self._flush)
        elif message["type"] == "http.response.body":
            self._is_complete = not message.get("more_body", False)
            self._unsent += body_frames(message.get("body", b""), is_last=self._is_complete)
            if not self._is_complete:  # `end` sends the last one, with END
                self._flush()
                await self._connection.drain()

    def _flush(self) -> None:
        if self._unsent and not self._is_complete:
            data, self._unsent = self._unsent, b""
            self._connection.write(data)

    async def end(self) -> bool:
        """The application has returned; whether the connection can be used again."""
        if self._is_switched or not self._is_complete:
            return False
        # Only now: the front process may send its next request as soon as it has this.
        self._connection.write(self._unsent + frame(END))
        await self._connection.drain()
        # If we closed the connection before all is read, the system would drop the response.
        while self._unread and (await self._connection.next())[0] == BODY:
            pass
        return True

    # For handlers: see `ClientConnection`.

    def belongs_to(self, tenant: str) -> bool:
        """The front process has checked this."""
        return True

    def switch(self, headers: list[tuple[bytes, bytes]]) -> Switched:
        """See `BoundedConnection`."""
        asks = [value.lower() for name, value in self._head.headers if name == b"connection"]
        if self._unread or b"upgrade" not in b",".join(asks):
            raise h11.LocalProtocolError("the client did not ask for it")
        answer = ResponseHead(101, headers)
        self._connection.write(frame(SWITCH, msgspec.msgpack.encode(answer)))
        self._is_switched = True
        return self._connection.switch()

    def drop(self) -> None:
        """See `BoundedConnection`."""
        self._connection.close()
