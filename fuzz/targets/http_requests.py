"""Requests to real servers on loopback: `wasmsand serve` and `wasmsand mcp --http`.

An input is what a client sends on one connection. `@SANDBOX@`, `@SESSION@`, `@PORT@` and `@LENGTH@`
stand for values that only the run knows, so that requests pass the first checks. Rules: every
answer is HTTP; none has status 500; the server answers other clients during and after the input.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack
from random import Random
from typing import Final
from urllib.parse import urlsplit

from fuzz.machines import prepare_process
from fuzz.mutation import mutated
from fuzz.target import MIB, Finding, Target
from fuzz.targets.json_lines import changed_lines, make_sessions, mcp_requests
from tests.http.bad_input import TABLE
from wasmsand.http.routes import ROUTES
from wasmsand.http.serve import running_server
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import Token
from wasmsand.mcp.streamable_http import PATH, HttpOptions, serve_http

_TOKEN: Final = "fuzzing-token-of-nobody"
_ANSWER_SECONDS: Final = 0.25
"""How long to wait for an answer: an input without a whole request gets none."""
_WELL_SECONDS: Final = 15.0
_CHECK_EVERY: Final = 20
_FAILURE: Final = re.compile(rb"HTTP/1\.1 500[^\r]*")
_WORDS: Final = (
    b"GET ", b"POST ", b"PUT ", b"DELETE ", b"PATCH ", b"HEAD ", b"OPTIONS ", b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n", b"\r\n", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\n",
    b"Expect: 100-continue\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"%00",
    b"%2e%2e", b"?path=/tmp/a", b"&path=b", b"@SANDBOX@", b"@SESSION@", b"Host: [::1\r\n",
    b"Origin: x\r\n",
    b"Range: bytes=0-\r\n", b"Content-Type: application/json\r\n", b"Accept: text/event-stream\r\n",
    b"/files", b"/run", b"/commands", b"/files/tar", b"/env", b"/processes/1/signal", b"\0",
    b"?path=/dev/zero", b"Content-Encoding: gzip\r\n", b"Authorization: Bearer \r\n",
    b"\xff", b"X: " + b"a" * 9000,
)  # fmt: skip


class _Requests(Target):
    words = _WORDS
    longest = 16384
    well = b" 200 "

    def __init__(self) -> None:
        prepare_process()
        self._resources = ExitStack()
        self._address = self.start(self._resources)
        self._inputs = 0

    @abstractmethod
    def start(self, resources: ExitStack) -> tuple[str, int]:
        """Start the server; returns its address."""

    @abstractmethod
    def filled(self, data: bytes) -> bytes:
        """The input with the values that only the run knows."""

    @property
    @abstractmethod
    def question(self) -> bytes:
        """A request that a healthy server answers with the status `well`."""

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        head, blank, body = data.partition(b"\r\n\r\n")
        if blank and random.randrange(3) == 0:
            changed = changed_lines(random, body, other.partition(b"\r\n\r\n")[2])
            return (head + blank + changed)[: self.longest]
        if random.randrange(4) == 0:
            return (data + other)[: self.longest]
        return mutated(random, data, other, _WORDS, most=self.longest)

    def run(self, data: bytes) -> None:
        filled = self.filled(data)
        head, blank, body = filled.partition(b"\r\n\r\n")
        filled = head.replace(b"@LENGTH@", b"%d" % len(body)) + blank + body
        answer = self._send(filled, _ANSWER_SECONDS)
        if answer and not answer.startswith(b"HTTP/1."):
            raise Finding("not-http", repr(answer[:200]))
        if failure := _FAILURE.search(answer):
            text = answer[failure.start() : failure.start() + 600].decode("latin-1")
            raise Finding("status-500", f"{head.splitlines()[:1]!r}\n{text}")
        self._inputs += 1
        if self._inputs % _CHECK_EVERY == 1:
            self.check_well()

    def check_well(self) -> None:
        """Raise `Finding` if the server does not answer."""
        try:
            answer = self._send(self.question, _WELL_SECONDS)
        except OSError as error:
            raise Finding("unusable", f"the server does not answer: {error!r}") from None
        if self.well not in answer[:20]:
            raise Finding("unusable", f"the server answers {answer[:200]!r}")

    def ask(self, method: str, target: str, body: bytes = b"") -> bytes:
        """The body of the answer to one request."""
        answer = self._send(_request(method, target, body), _WELL_SECONDS)
        return answer.partition(b"\r\n\r\n")[2]

    def _send(self, data: bytes, seconds: float) -> bytes:
        """Send, and return what arrives until the connection closes or is silent for `seconds`."""
        received = bytearray()
        with socket.create_connection(self._address, timeout=_WELL_SECONDS) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                connection.sendall(data.replace(b"@PORT@", b"%d" % self._address[1]))
                connection.settimeout(seconds)
                while len(received) < 4 * MIB:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    received += piece
                    if _is_whole(received):
                        break
            except (TimeoutError, ConnectionError):
                pass
        return bytes(received)

    def close(self) -> None:
        self.check_well()
        self._resources.close()


def _is_whole(received: bytearray) -> bool:
    """Whether one complete answer has arrived; nobody waits for a second one."""
    head, blank, body = received.partition(b"\r\n\r\n")
    if re.search(rb"(?i)transfer-encoding: chunked", head):
        return body.endswith(b"0\r\n\r\n")
    found = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(blank) and found is not None and len(body) >= int(found[1])


def _request(method: str, target: str, body: bytes = b"", *more: str, token: str = _TOKEN) -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: 127.0.0.1:@PORT@",
        f"Authorization: Bearer {token}",
        "Connection: close",
        *more,
    ]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append("Content-Length: @LENGTH@" if b"@" in body else f"Content-Length: {len(body)}")
        if body[:1] in (b"{", b"["):
            lines.append("Content-Type: application/json")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


class HttpRequests(_Requests):
    """`wasmsand serve`."""

    name = "http"
    about = "requests to `wasmsand serve`"
    _sandbox = b""
    _used = 0

    def start(self, resources: ExitStack) -> tuple[str, int]:
        settings = Settings(
            port=0,
            tokens=(Token.of("fuzz", _TOKEN),),
            isolation="none",  # coverage of another process cannot be seen
            header_seconds=2,
            body_seconds=2,
            max_json_bytes=1 * MIB,
            max_upload_bytes=1 * MIB,
            grace_seconds=2,
            max_command_seconds=2,
        )
        url = urlsplit(resources.enter_context(running_server(settings)))
        return url.hostname or "", url.port or 0

    @property
    def question(self) -> bytes:
        return _request("GET", "/healthz")

    def seeds(self) -> Iterable[bytes]:
        for route in ROUTES:
            path = route.path.replace("{sandbox}", "@SANDBOX@").replace("{command}", "1")
            path = path.replace("{pid}", "2")
            body = b"{}" if route.body is not None else b""
            yield _request(route.method, path + ("?path=/tmp/a" if "/files" in path else ""), body)
        for wrong in TABLE:
            target = wrong.target.replace("@killed", "/v1/sandboxes/gone")
            target = target.replace("@", "/v1/sandboxes/@SANDBOX@")
            body = wrong.body if wrong.body is not None else json.dumps(wrong.value).encode()
            if len(body) < self.longest // 2:
                more = [f"{name}: {value}" for name, value in wrong.headers.items()]
                yield _request(wrong.method, target, body, *more)
        path = "/v1/sandboxes/@SANDBOX@"
        yield _request("POST", path + "/run", b'{"command": "true"}')
        yield _request("POST", path + "/run", b'{"command": "true"}', "Accept: text/event-stream")
        yield _request("POST", path + "/commands", b'{"command": "true"}')
        yield _request("PUT", path + "/files?path=/tmp/a", b"content")
        chunked = _request("PUT", path + "/files?path=/tmp/a", b"", "Transfer-Encoding: chunked")
        yield chunked.replace(b"Content-Length: 0\r\n", b"") + b"5\r\nhello\r\n0\r\n\r\n"
        yield b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n"
        yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    def filled(self, data: bytes) -> bytes:
        if b"@SANDBOX@" not in data:
            return data
        self._used += 1
        if not self._sandbox or self._used % 50 == 0 or not self._is_there():
            if self._sandbox:
                self.ask("DELETE", f"/v1/sandboxes/{self._sandbox.decode()}")
            options = {"fs_limit_bytes": 4 * MIB, "max_inodes": 500, "timeout_ms": 500}
            made = self.ask("POST", "/v1/sandboxes", json.dumps(options).encode())
            self._sandbox = str(json.loads(made)["id"]).encode()
        return data.replace(b"@SANDBOX@", self._sandbox)

    def _is_there(self) -> bool:
        state = self.ask("GET", f"/v1/sandboxes/{self._sandbox.decode()}")
        return b'"error"' not in state


class McpRequests(_Requests):
    """`wasmsand mcp --http`."""

    name = "mcphttp"
    about = "requests to `wasmsand mcp --http`"
    well = b" 404 "
    _session = b""
    _used = 0

    def start(self, resources: ExitStack) -> tuple[str, int]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = HttpOptions(port=port, token=_TOKEN, max_sessions=256, idle_seconds=1)
        arguments = (make_sessions(options.max_sessions), "0", options)
        threading.Thread(target=serve_http, args=arguments, daemon=True, name="fuzz-mcp").start()
        deadline = time.monotonic() + _WELL_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return "127.0.0.1", port
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @property
    def question(self) -> bytes:
        return self._post(mcp_requests()[2], "Mcp-Session-Id: unknown")

    def _post(self, value: object, *more: str) -> bytes:
        accept = "Accept: application/json, text/event-stream"
        return _request("POST", PATH, json.dumps(value).encode(), accept, *more)

    def seeds(self) -> Iterable[bytes]:
        session = "Mcp-Session-Id: @SESSION@"
        first, *rest = mcp_requests()
        yield self._post(first)
        for request in rest:
            yield self._post(request, session)
        yield _request("GET", PATH, b"", "Accept: text/event-stream", session)
        yield _request("DELETE", PATH, b"", session)
        yield _request("OPTIONS", PATH)
        yield _request("POST", PATH, b"[" * 2000, "Accept: application/json, text/event-stream")
        yield _request("POST", PATH, b"{}", token="x" * 40)
        yield b"POST /mcp HTTP/1.1\r\nHost: a"

    def filled(self, data: bytes) -> bytes:
        if b"@SESSION@" not in data:
            return data
        self._used += 1
        if not self._session or self._used % 20 == 0:
            self._end_session()
            answer = self._send(self._post(mcp_requests()[0]), _WELL_SECONDS)
            found = re.search(rb"(?i)mcp-session-id: (\S+)", answer)
            self._session = found[1] if found else b"none"
        return data.replace(b"@SESSION@", self._session)

    def _end_session(self) -> None:
        if self._session:
            header = f"Mcp-Session-Id: {self._session.decode('latin-1')}"
            self._send(_request("DELETE", PATH, b"", header), _WELL_SECONDS)
