"""Requests to a server over persistent connections.

Owns the client's sockets and their failures. Rules: standard library only; several threads
may send requests, each on its own connection; a connection is checked for the server's close
before it is reused; a POST is never sent twice; if the server cannot be reached, the
client raises `ConnectionLostError`: at once if the system reports it, otherwise when the
request times out.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from wasmsand.http.answers import exception_of
from wasmsand.sdk.errors import ConnectionLostError
from wasmsand.wire import strict_json

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 60.0
"""Timeout of a request that does not wait for a command."""
_IDLE_SECONDS: Final = 50.0
"""A connection that was idle for longer is not reused: servers close idle ones after 75."""
_KEPT: Final = 8
_PIECE: Final = 256 * 1024

Content = bytes | Iterable[bytes] | None


class Transport:
    """Sends requests to one server."""

    has_stable_address = True
    """Whether users may know the server's URL, and have a token for it."""

    def __init__(self, url: str, token: str | None) -> None:
        """Raises `ValueError` for an invalid URL or token."""
        self._aim(url, token)
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._kept: list[tuple[float, int, http.client.HTTPConnection]] = []
        """Idle connections: idle since when, opened by which process."""
        self._closed = False
        _transports.add(self)

    def _aim(self, url: str, token: str | None) -> None:
        """Send requests to this server from now on. Raises `ValueError`."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ValueError(f"url: {error}: {url!r}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be like http://127.0.0.1:8750, not {url!r}")
        if parts.query or parts.fragment or parts.username:
            raise ValueError(f"url must have no user, query or fragment: {url!r}")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("token must be printable ASCII")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._given = (url, token)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname
        self._port = port
        self._prefix = parts.path.rstrip("/")
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        """Headers of every request."""

    def another(self) -> Transport:
        """One to the same server, with connections of its own."""
        return Transport(*self._given)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        value: object = None,
        content: Content = None,
        seconds: float | None = ANSWER_SECONDS,
        exchange: HttpExchange | None = None,
    ) -> bytes:
        """Send a request with `value` as JSON, or with `content` unchanged. Returns the body of
        the response.

        Raises the exception that the server reports, or `ConnectionLostError`.
        """
        exchange = exchange or HttpExchange()
        response = self._send(method, path, query, value, content, seconds, exchange)
        with exchange:
            try:
                body = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise self.lost(error) from None
            if response.status >= 400:
                raise exception_of(response.status, body)
            self.keep(exchange, response)
            return body

    def ask_pieces(
        self, method: str, path: str, *, query: Mapping[str, object] | None = None
    ) -> Iterator[bytes]:
        """Like `ask`, but returns the body in pieces. Sends the request at once."""
        exchange = HttpExchange()
        response = self._send(method, path, query, None, None, ANSWER_SECONDS, exchange)
        if response.status >= 400:
            with exchange:
                raise exception_of(response.status, response.read())
        return _Pieces(self, exchange, response)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        value: object,
        content: Content,
        seconds: float | None,
        exchange: HttpExchange,
    ) -> http.client.HTTPResponse:
        target = self.target_of(path)
        if query:
            target += "?" + urlencode(query, errors="surrogateescape", quote_via=quote)
        headers = dict(self.headers)
        if value is not None:
            content = strict_json.encode(value)
            headers["Content-Type"] = "application/json"
        repeatable = method in ("GET", "PUT", "DELETE") and (
            content is None or isinstance(content, bytes)
        )
        while True:
            connection, fresh = self._connection()
            exchange.begin(connection)
            try:
                if fresh:
                    connection.connect()
                    _watch_the_peer(connection.sock)
                connection.sock.settimeout(seconds)
                exchange.was_sent = True
                _write(connection, method, target, content, headers)
                return connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                exchange.end()
                if fresh or not repeatable:
                    raise self.lost(error) from None
            except BaseException:  # raised by the iterator `content`
                exchange.end()
                raise

    def target_of(self, path: str) -> str:
        """The target of a request for `path` of the server."""
        return self._prefix + path

    def address_of(self, path: str) -> str:
        """The URL of `path` of the server."""
        return self.url + self.target_of(path)

    def new_connection(self) -> http.client.HTTPConnection:
        """A connection that is not open yet. The caller closes it."""
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, CONNECT_SECONDS)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=CONNECT_SECONDS, context=self._tls
        )

    def connected(self) -> http.client.HTTPConnection:
        """A new connection that is open. The caller closes it. Raises `OSError`."""
        connection = self.new_connection()
        connection.connect()
        return connection

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it is new."""
        process, oldest = os.getpid(), time.monotonic() - _IDLE_SECONDS
        while True:
            with self._lock:
                if self._closed:
                    raise ConnectionLostError(f"the connection to {self.url} was closed")
                if not self._kept:
                    break
                since, owner, connection = self._kept.pop()
            # After a fork, do not share the parent's connections: responses would get mixed up.
            if owner == process and since > oldest and not _is_readable(connection.sock):
                return connection, False
            connection.close()
        return self.new_connection(), True

    def keep(self, exchange: HttpExchange, response: http.client.HTTPResponse) -> None:
        """After a response: keep its connection for reuse, unless the server closes it."""
        if response.will_close:
            return
        connection = exchange.take()
        with self._lock:
            if connection is not None and not self._closed and len(self._kept) < _KEPT:
                self._kept.append((time.monotonic(), os.getpid(), connection))
                return
        if connection is not None:
            connection.close()

    def lost(self, error: Exception) -> ConnectionLostError:
        """The exception for a failed connection."""
        if isinstance(error, TimeoutError):
            cause = "no response in time"
        elif isinstance(error, http.client.HTTPException):
            cause = "it closed the connection, or did not send a valid HTTP response"
        else:
            cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ConnectionLostError(
            f"the server at {self.url} has ended or cannot be reached ({cause}); if it was "
            "restarted without a store, its sandboxes are lost: create a new one"
        )

    def close(self) -> None:
        """Close idle connections; idempotent."""
        with self._lock:
            self._closed = True
        self._drop_kept()

    def _drop_kept(self) -> None:
        """Close idle connections; new ones may follow."""
        with self._lock:
            kept, self._kept = self._kept, []
        for _, _, connection in kept:
            connection.close()


_transports: weakref.WeakSet[Transport] = weakref.WeakSet()


def _renew_locks() -> None:
    # In a forked process, no thread is left that could release them.
    for transport in list(_transports):
        transport._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class _Pieces:
    """A response that is read piece by piece. If it is dropped before its end, the connection
    is closed."""

    def __init__(
        self, transport: Transport, exchange: HttpExchange, response: http.client.HTTPResponse
    ) -> None:
        self._transport = transport
        self._exchange = exchange
        self._response = response
        weakref.finalize(self, exchange.end)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            piece = self._response.read(_PIECE)
        except (OSError, http.client.HTTPException) as error:
            self._exchange.end()
            raise self._transport.lost(error) from None
        if not piece:
            self._transport.keep(self._exchange, self._response)
            raise StopIteration
        return piece


class HttpExchange:
    """One request and its response, which another thread may abort."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._connection: http.client.HTTPConnection | None = None
        self.broken = False
        self.was_sent = False
        """Whether the server may have got a part of the request. Used by the sending thread."""

    def begin(self, connection: http.client.HTTPConnection) -> None:
        """Use `connection` from now on."""
        with self._lock:
            self._connection = connection

    def take(self) -> http.client.HTTPConnection | None:
        """Pass the connection to the caller; None if the exchange was aborted."""
        with self._lock:
            connection, self._connection = self._connection, None
            return None if self.broken else connection

    def break_off(self) -> None:
        """Abort: the thread that waits for the response gets an error, and the server notices."""
        with self._lock:
            self.broken = True
            connection = self._connection
            if connection is not None and connection.sock is not None:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # already closed

    def end(self) -> None:
        """Close the connection, unless it was taken."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> HttpExchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _write(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    content: Content,
    headers: Mapping[str, str],
) -> None:
    try:
        connection.request(method, target, body=content, headers=headers)
    except (BrokenPipeError, ConnectionResetError):
        # A server that refuses a body may respond before it has read the body. Go on and read
        # the response; if there is none, that fails in the same way.
        if content is None:
            raise


def _is_readable(connection: socket.socket | None) -> bool:
    """Whether an idle connection is readable, which means that the server closed it."""
    if connection is None:
        return True
    if not hasattr(select, "poll"):  # Windows, where select has no highest descriptor
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _watch_the_peer(connection: socket.socket) -> None:
    """Enable TCP keepalive, so that the system notices a lost server."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
