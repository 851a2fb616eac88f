"""A terminal of a sandbox behind a WebSocket.

Owns `TerminalSession`: one program, from the client's `open` to the end of either side. Rules: runs
on the event loop; two threads of its own wait for the sandbox, so that a busy server does not
freeze terminals. Memory is bounded: one piece of output is in flight, and input that the program
does not read stops the client. When the client is gone, the terminal hangs up.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.routing import Call
from wasmsand.http.service import log
from wasmsand.http.terminal_messages import (
    AckOutput,
    HangUpTerminal,
    KillTerminal,
    OpenTerminal,
    ResizeTerminal,
    TerminalOrder,
)
from wasmsand.http.websocket import Message, WebSocket, WebSocketError
from wasmsand.http.websocket_frames import BINARY, INTERNAL, NORMAL, PING, REFUSED, TEXT
from wasmsand.sdk.backend import BackendTerminal
from wasmsand.sdk.errors import CommandError
from wasmsand.wire import strict_json

Result = TypeVar("Result")

FIRST_MAX: Final = 4 * 1024 * 1024
"""Largest first message: it may have all variables."""
MESSAGE_MAX: Final = 256 * 1024
_TEXT_MAX: Final = 4096
"""Largest text message after the first one."""
_VALUES_MAX: Final = 200_000
_PIECE: Final = 64 * 1024
INPUT_MAX: Final = 64 * 1024
"""Bytes of input that may wait for the program; the client may not send more before an `ack`."""
_OPEN_SECONDS: Final = 20.0
_LOST_SECONDS: Final = 60.0
"""A client that sends nothing, not even a pong, for this long is gone."""
_EXIT_SECONDS: Final = 5.0
"""How long a program may take to end after its terminal was hung up."""
_CLOSE_SECONDS: Final = 10.0
_BUSY_SECONDS: Final = 0.2


class _Gone(Exception):
    """The client is gone."""


class _Worker:
    """One thread that makes calls, one after the other."""

    def __init__(self, start: Callable[[Callable[[], None]], None]) -> None:
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        start(self._work)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            order()

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of `call`. If the caller is cancelled, the call goes on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def settle(result: Result | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # it is the call's result

        def order() -> None:
            result, failure = None, None
            try:
                result = call()
            except Exception as error:
                failure = error
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(settle, result, failure)

        self._orders.put(order)
        return await future

    def end(self) -> None:
        """Let the thread end after its last call."""
        self._orders.put(None)


class TerminalSession:
    """One terminal and its client."""

    def __init__(self, call: Call[None, None], socket: WebSocket) -> None:
        self._call = call
        self._socket = socket
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting = 0
        """Bytes of input that wait, or are being typed."""
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._window: int | None = None
        self._credit = 0
        """Bytes of output that the client takes now, if it has a window."""
        self._has_credit = asyncio.Event()
        self._hung_up = False
        """Whether the client has hung up, and takes no more output."""

    async def run(self) -> None:
        """Serve the client until the program has ended or the client is gone."""
        try:
            terminal = await asyncio.wait_for(self._open(), _OPEN_SECONDS)
        except (_Gone, ConnectionError):
            self._socket.drop()
            return
        except Exception as error:
            await self._report(error)
            return
        reader = _Worker(self._call.service.start_thread)
        typist = _Worker(self._call.service.start_thread)
        try:
            await self._converse(terminal, reader, typist)
        finally:
            done = self._call.service.endings.run(terminal.close)
            reader.end()
            typist.end()
            await asyncio.wait({done}, timeout=_CLOSE_SECONDS)
            self._socket.drop()

    async def _open(self) -> BackendTerminal:
        message = await self._socket.receive()
        if message is None:
            raise _Gone
        order = order_of(message)
        if not isinstance(order, OpenTerminal):
            raise ApiFailure(400, "invalid_value", 'the first message must have the type "open"')
        self._socket.messages.limit = MESSAGE_MAX
        sandbox = self._call.entry.sandbox
        request = sandbox.terminal_request(order)
        terminal = await self._call.in_command_thread(
            lambda: sandbox.backend.open_terminal(request, order.rows, order.cols)
        )
        self._window = order.window
        self._credit = order.window or 0
        self._has_credit.set()
        opened = {"type": "opened", "pid": terminal.pid, "input_window": INPUT_MAX}
        await self._tell(opened)
        return terminal

    async def _converse(self, terminal: BackendTerminal, reader: _Worker, typist: _Worker) -> None:
        tasks = {
            asyncio.create_task(each)
            for each in (
                self._show(terminal, reader),
                self._receive(terminal),
                self._type(terminal, typist),
                self._watch_client(),
            )
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await self._socket.close(NORMAL)
        except (_Gone, ConnectionError):
            pass
        except Exception as error:
            await self._report(error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # The directions.

    async def _show(self, terminal: BackendTerminal, reader: _Worker) -> None:
        """Send output until the program has ended; then report its exit."""
        while True:
            count = _PIECE
            if self._window is not None:
                await self._has_credit.wait()
                count = min(count, self._credit)
            data = await reader.run(partial(terminal.read, count))
            if not data:
                break
            if self._hung_up:
                continue
            if self._window is not None:
                self._credit -= len(data)
                if self._credit <= 0:
                    self._has_credit.clear()
            await self._socket.send(BINARY, data)
        code = await reader.run(partial(terminal.wait, _EXIT_SECONDS))
        self._call.entry.sandbox.check_alive()
        await self._tell({"type": "exit", "exit_code": code})

    async def _type(self, terminal: BackendTerminal, typist: _Worker) -> None:
        """Type what the client has sent."""
        while True:
            data = await self._typed.get()
            try:
                await typist.run(partial(terminal.write, data))
            except CommandError:
                pass  # the program has ended, or the terminal was hung up: nobody reads
            self._waiting -= len(data)
            if self._waiting < INPUT_MAX:
                self._has_room.set()
            if self._window is not None:
                await self._tell({"type": "ack", "bytes": len(data)})

    async def _receive(self, terminal: BackendTerminal) -> None:
        """Take the client's messages."""
        while True:
            await self._has_room.wait()
            message = await self._socket.receive()
            if message is None:
                raise _Gone
            if message.kind == BINARY:
                if message.data:
                    self._waiting += len(message.data)
                    if self._waiting >= INPUT_MAX:
                        self._has_room.clear()
                    self._typed.put_nowait(message.data)
                continue
            match order_of(message, _TEXT_MAX):
                case ResizeTerminal(cols=columns, rows=rows):
                    await self._patiently(partial(terminal.resize, rows, columns))
                case AckOutput(bytes=count) if self._window is not None:
                    self._credit = min(self._window, self._credit + count)
                    self._has_credit.set()
                case KillTerminal():
                    await self._patiently(terminal.kill)
                case HangUpTerminal():
                    self._hung_up = True
                    self._credit = _PIECE
                    self._has_credit.set()
                    await self._patiently(terminal.close)
                case _:
                    raise ApiFailure(400, "invalid_value", "the terminal is open already")

    async def _watch_client(self) -> None:
        """Send pings, and notice a client that does not answer."""
        self._socket.notice_loss()
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._call.service.settings.heartbeat_seconds)
            # While input waits, nothing is received.
            if self._has_room.is_set() and loop.time() - self._socket.heard > _LOST_SECONDS:
                raise _Gone
            await self._socket.send(PING, b"")

    async def _patiently(self, call: Callable[[], object]) -> None:
        """Make a short call of the sandbox, also while the server is busy."""
        while True:
            try:
                await self._call.in_file_thread(call)
                return
            except ApiFailure as failure:
                if failure.code != "busy":
                    raise
                await asyncio.sleep(_BUSY_SECONDS)

    # Messages to the client.

    async def _tell(self, value: dict[str, object]) -> None:
        await self._socket.send(TEXT, strict_json.encode(value))

    async def _report(self, error: Exception) -> None:
        """Tell the client why the terminal ends."""
        code = REFUSED
        if isinstance(error, WebSocketError):
            failure: ApiFailure | None = ApiFailure(400, "bad_request", str(error))
            code = error.code
        elif isinstance(error, TimeoutError):
            failure = ApiFailure(408, "timeout", 'no message with the type "open" arrived')
        else:
            failure = failure_of(error)
        if failure is None:
            log.error("bug in a terminal", exc_info=error)
            failure, code = ApiFailure(500, "internal", "bug in the server; see its log"), INTERNAL
        with suppress(ConnectionError):
            await self._tell({"type": "error", **failure.body()})
            await self._socket.close(code, failure.code)
        self._socket.drop()


def order_of(message: Message, most: int = FIRST_MAX) -> TerminalOrder:
    """A client's text message. Raises `ApiFailure`."""
    if message.kind != TEXT:
        raise ApiFailure(400, "invalid_value", "the first message must be text")
    if len(message.data) > most:
        raise ApiFailure(413, "body_too_large", f"a text message may have {most} bytes")
    message.text()
    try:
        value: Any = strict_json.decode(message.data, _VALUES_MAX)
        order: TerminalOrder = msgspec.convert(value, TerminalOrder, strict=True)
        return order
    except strict_json.BadJson as error:
        raise ApiFailure(400, "bad_json", str(error)) from None
    except msgspec.ValidationError as error:
        raise ApiFailure(400, "invalid_value", str(error)) from None
    except UnicodeEncodeError:
        raise ApiFailure(400, "invalid_value", "a name or type has half a character") from None
