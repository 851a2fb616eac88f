"""Real servers on loopback, one thread each, whose behaviour is a function of the test."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECONDS = 20.0
Handler = Callable[[socket.socket], None]


@contextmanager
def raw_server(handle: Handler, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server whose `handle` gets each connection; yields its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopping = False

    def serve_one(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.settimeout(SECONDS)
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            with connection:
                handle(connection)

    def serve() -> None:
        while not stopping:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        stopping = True
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(SECONDS)


def answering(*responses: bytes, seen: list[bytes] | None = None) -> Handler:
    """Answer each head of a request (without bodies) with the next of `responses`, then close."""

    def handle(connection: socket.socket) -> None:
        buffer = b""
        for response in responses:
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            if seen is not None:
                seen.append(head + b"\r\n\r\n")
            connection.sendall(response)
        if isinstance(connection, ssl.SSLSocket):
            with suppress(OSError):
                connection.unwrap()

    return handle


def files_of(root: Path) -> Handler:
    """Answer GET with files, one for each connection."""

    def handle(connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = connection.recv(65536)
            if not data:
                return
            head += data
        path = root / head.split(b" ")[1].decode().strip("/")
        path = path / "index.html" if path.is_dir() else path
        body = path.read_bytes() if path.is_file() else b""
        status = b"200 OK" if path.is_file() else b"404 Not Found"
        kind = b"text/html" if path.suffix == ".html" else b"application/octet-stream"
        connection.sendall(
            b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            % (status, kind, len(body))
            + body
        )

    return handle


@dataclass
class Echo:
    """An ordinary HTTP/1.1 server that answers with what it got."""

    port: int = 0
    requests: list[tuple[str, str, dict[str, list[str]], bytes]] = field(default_factory=list)


@contextmanager
def echo_server(context: ssl.SSLContext | None = None) -> Iterator[Echo]:
    """Answers every request with its method, target and body; /headers shows the headers."""
    echo = Echo()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SECONDS
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b"".join(iter(self.read_chunk, b""))
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers: dict[str, list[str]] = {}
            for name, value in self.headers.items():
                headers.setdefault(name.lower(), []).append(value)
            echo.requests.append((self.command, self.path, headers, body))
            answer = f"{self.command} {self.path} {len(body)}\n".encode()
            if self.path.startswith("/chunked"):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in (answer, b"second\n"):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\nX-Trailer: 1\r\n\r\n")
                return
            if self.path.startswith("/status/"):
                self.send_response(int(self.path.removeprefix("/status/")))
                if self.path.endswith("4"):  # 204 and 304 have no body
                    self.end_headers()
                    return
            elif self.path.startswith("/large/"):
                answer = b"x" * int(self.path.removeprefix("/large/"))
                self.send_response(200)
            elif self.path == "/headers":
                answer = f"Authorization: {self.headers['Authorization']}\n".encode()
                self.send_response(200)
            elif self.path == "/redirect":
                self.send_response(302)
                self.send_header("Location", "https://other.test/landing")
            elif self.path == "/reflect":
                self.send_response(200)
                for name in ("Origin", "X-Request-Id", "Authorization"):
                    if given := self.headers.get(name):
                        self.send_header(f"X-Was-{name}", given)
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        def read_chunk(self) -> bytes:
            size = int(self.rfile.readline().split(b";")[0], 16)
            data = self.rfile.read(size)
            self.rfile.readline()
            return data

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            with suppress(OSError):
                if context is not None:
                    request = context.wrap_socket(request, server_side=True)
                with request:
                    super().finish_request(request, client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # connections that the tests cut off

    server = Server(("127.0.0.1", 0), Answers)
    echo.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield echo
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)
