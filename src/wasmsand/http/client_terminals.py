"""Terminals of a server's sandbox, as `BackendTerminal`.

Owns `HttpTerminals`, a part of `HttpBackend`, and `HttpTerminal`, the client's end of a WebSocket.
Rules: standard library only. A thread of the terminal receives; it does not refer to the
`HttpTerminal`, so that a terminal that nobody holds is closed. Both directions have a window, so
that a bounded amount is buffered, and orders such as `kill` are never stuck behind input.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
import threading
import time
import weakref
from collections import deque
from typing import Any, Final

from wasmsand.http.answers import exception_of
from wasmsand.http.client_streams import open_stream
from wasmsand.http.transport import Transport
from wasmsand.http.websocket_frames import (
    BINARY,
    CLOSE,
    NORMAL,
    PING,
    PONG,
    TEXT,
    Messages,
    WebSocketError,
    accept_value,
    closing,
    frame,
)
from wasmsand.sdk.backend import BackendTerminal, CommandRequest
from wasmsand.sdk.errors import CommandError, ConnectionLostError, ForkedError
from wasmsand.wire import strict_json

_WINDOW: Final = 256 * 1024
_MESSAGE_MAX: Final = 1024 * 1024
_RECEIVED: Final = 64 * 1024
_PIECE: Final = 32 * 1024
_OPEN_SECONDS: Final = 60.0
_SILENCE_SECONDS: Final = 60.0
"""A server that sends nothing for this long, not even a ping, is lost. A timeout also keeps TLS
connections usable by two threads: the system's calls do not block."""


class HttpTerminals:
    """The terminals of a server's sandbox."""

    _transport: Transport
    _path: str

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """See `Backend`."""
        key = base64.b64encode(secrets.token_bytes(16)).decode("ascii")
        headers = {
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
        }
        path = f"{self._path}/terminal"
        connection, answer = open_stream(self._transport, "GET", path, headers, _OPEN_SECONDS)
        if answer.get("sec-websocket-accept") != accept_value(key):
            connection.close()
            raise ConnectionLostError("not a response from wasmsand: the WebSocket's key is wrong")
        wanted = {
            "type": "open",
            "command": list(request.argv),
            "environ": dict(request.environ),
            "cwd": request.cwd,
            "user": request.user,
            "cols": columns,
            "rows": rows,
            "window": _WINDOW,
        }
        link = _Link(self._transport, connection)
        try:
            link.tell(wanted)
            pid = link.opened()
        except BaseException:
            link.end()
            raise
        return HttpTerminal(link, pid)


class _Link:
    """The connection, what was received from it, and the thread that receives."""

    def __init__(self, transport: Transport, connection: socket.socket) -> None:
        self._transport = transport
        self._connection = connection
        connection.settimeout(_SILENCE_SECONDS)
        self._sending = threading.Lock()
        self._state = threading.Condition()
        # Guarded by the condition:
        self._pieces: deque[bytes] = deque()
        self._used = 0
        """Bytes that were read and not acknowledged."""
        self._unacked = 0
        """Bytes of input that the server has not acknowledged."""
        self._input_window = 0
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.has_ended = False
        """Whether the server has reported the exit."""
        self.failure: Exception | None = None
        self.is_closed = False
        self._thread = threading.Thread(target=self._receive, name="wasmsand-terminal", daemon=True)
        self._thread.start()

    # Receiving.

    def _receive(self) -> None:
        messages = Messages(masked=False, limit=_MESSAGE_MAX)
        try:
            while not self.has_ended:
                data = self._connection.recv(_RECEIVED)
                if not data:
                    break
                messages.feed(data)
                while (message := messages.next()) is not None:
                    if message.kind == BINARY:
                        self._show(message.data)
                    elif message.kind == TEXT:
                        self._notice(strict_json.decode(message.data))
                    elif message.kind == PING:
                        self._send(PONG, message.data)
        except (OSError, WebSocketError, strict_json.BadJson, KeyError, TypeError) as error:
            self._fail(self._transport.lost(error))
        else:
            self._fail(self._transport.lost(ConnectionResetError("the connection was closed")))
        finally:
            self._connection.close()

    def _show(self, data: bytes) -> None:
        with self._state:
            self._pieces.append(data)
            self._state.notify_all()

    def _notice(self, value: Any) -> None:
        with self._state:
            match value["type"]:
                case "opened":
                    self.pid = int(value["pid"])
                    self._input_window = int(value["input_window"])
                case "ack":
                    self._unacked = max(0, self._unacked - int(value["bytes"]))
                case "exit":
                    code = value["exit_code"]
                    self.exit_code = None if code is None else int(code)
                    self.has_ended = True
                case "error":
                    body = strict_json.encode({"error": value["error"]})
                    self.failure = exception_of(400, body)
            self._state.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._state:
            if self.failure is None and not self.has_ended:
                self.failure = error
            self._state.notify_all()

    # Sending.

    def tell(self, value: dict[str, object]) -> None:
        """Send an order. Raises `ConnectionLostError`."""
        self._send(TEXT, strict_json.encode(value))

    def _send(self, kind: int, data: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(frame(kind, data, masked=True))
        except OSError as error:
            raise self._transport.lost(error) from None

    # For the terminal.

    def opened(self) -> int:
        """Wait until the program has started, and return its pid."""
        with self._state:
            if not self._state.wait_for(lambda: self.pid or self.failure, _OPEN_SECONDS):
                raise self._transport.lost(TimeoutError())
            if self.failure is not None:
                raise self.failure
            assert self.pid is not None
            return self.pid

    def read(self, count: int, timeout_seconds: float | None) -> bytes:
        """See `BackendTerminal`."""
        with self._state:
            is_ready = self._state.wait_for(
                lambda: self._pieces or self.has_ended or self.failure, timeout_seconds
            )
            if not is_ready:
                raise TimeoutError
            if not self._pieces:
                if self.failure is not None and not self.is_closed:
                    raise self.failure
                return b""
            data = self._pieces.popleft()
            if len(data) > count:
                self._pieces.appendleft(data[count:])
                data = data[:count]
            self._used += len(data)
            used = 0
            if self._used >= _WINDOW // 2 and not self.has_ended:
                used, self._used = self._used, 0
        if used:
            try:
                self.tell({"type": "ack", "bytes": used})
            except ConnectionLostError:
                pass  # the next read reports it, after the rest of the output
        return data

    def write(self, data: bytes, timeout_seconds: float | None) -> int:
        """See `BackendTerminal`."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        done = 0
        while done < len(data):
            with self._state:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                self._state.wait_for(self._may_write, left)
                if self.is_closed:
                    raise CommandError("EBADF: the terminal was closed", "EBADF")
                if self.has_ended:
                    raise CommandError("EPIPE: the command has ended", "EPIPE")
                if self.failure is not None:
                    raise self.failure
                room = self._input_window - self._unacked
                if room <= 0:
                    return done  # the time is up
                piece = data[done : done + min(room, _PIECE)]
                self._unacked += len(piece)
            self._send(BINARY, piece)
            done += len(piece)
        return done

    def _may_write(self) -> bool:
        has_room = self._unacked < self._input_window
        return has_room or self.is_closed or self.has_ended or self.failure is not None

    def wait(self, timeout_seconds: float | None) -> int | None:
        """See `BackendTerminal`."""
        with self._state:
            self._state.wait_for(lambda: self.has_ended or self.failure, timeout_seconds)
            if not self.has_ended and self.failure is not None:
                raise self.failure
            return self.exit_code

    def hang_up(self) -> None:
        """Ask the server to hang up; its report of the exit still arrives."""
        with self._state:
            was_closed, self.is_closed = self.is_closed, True
            self._state.notify_all()
        if not was_closed and not self.has_ended:
            try:
                self.tell({"type": "hangup"})
            except ConnectionLostError:
                pass  # then the server hangs up by itself

    def end(self) -> None:
        """Close the connection: the server hangs up."""
        try:
            self._connection.settimeout(1.0)
            self._connection.sendall(frame(CLOSE, closing(NORMAL), masked=True))
        except OSError:
            pass  # the server is gone
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already


class HttpTerminal:
    """A program on a terminal of a server's sandbox."""

    def __init__(self, link: _Link, pid: int) -> None:
        self._link = link
        self._pid = pid
        self._owner = os.getpid()
        weakref.finalize(self, _abandon, link, self._owner).atexit = False

    def _checked(self) -> _Link:
        if os.getpid() != self._owner:  # the thread that receives does not exist here
            raise ForkedError.here("terminal")
        return self._link

    @property
    def pid(self) -> int:
        """See `BackendTerminal`."""
        return self._pid

    def read(self, count: int = 65536, timeout_seconds: float | None = None) -> bytes:
        """See `BackendTerminal`."""
        return self._checked().read(count, timeout_seconds)

    def write(self, data: bytes, timeout_seconds: float | None = None) -> int:
        """See `BackendTerminal`."""
        return self._checked().write(data, timeout_seconds)

    def resize(self, rows: int, columns: int) -> None:
        """See `BackendTerminal`."""
        if not self._checked().has_ended:
            self._link.tell({"type": "resize", "cols": columns, "rows": rows})

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """See `BackendTerminal`."""
        return self._checked().wait(timeout_seconds)

    def kill(self) -> None:
        """See `BackendTerminal`."""
        if not self._checked().has_ended:
            try:
                self._link.tell({"type": "kill"})
            except ConnectionLostError:
                pass  # the server has hung up

    def close(self) -> None:
        """See `BackendTerminal`."""
        self._checked().hang_up()


def _abandon(link: _Link, owner: int) -> None:
    """Close the connection of a terminal that is no longer referenced. In a forked process, do
    nothing: the terminal belongs to the parent."""
    if os.getpid() == owner:
        threading.Thread(target=link.end, name="wasmsand-terminal", daemon=True).start()
