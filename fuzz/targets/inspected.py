"""Inspected connections: a hostile guest, and a hostile server, on both sides of an inspector.

An input is a list of steps: which side sends what, in which pieces, and who ends. Rules: no step
raises; what waits is bounded; the guest never gets the secret; everything that the server gets is a
sequence of allowed requests to the right host, each with the secret, by a parser that shares no
code with the inspector; when both sides have ended, the connection is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random
from typing import Final

from fuzz.mutation import mutated
from fuzz.target import Finding, Source, Target
from wasmsand.machine.network.inspecting.authority import Authority
from wasmsand.machine.network.inspecting.contexts import verifying_context
from wasmsand.machine.network.inspecting.inspector import Inspector
from wasmsand.machine.network.inspecting.order import InspectionOrder, RequestSeen
from wasmsand.machine.network.policy import policy_of
from wasmsand.machine.network.rules import Verdict

_SECRET: Final = "sk-of-the-fuzzer-5d41"
_PLACEHOLDER: Final = "{{FUZZED}}"
_HELD_MAX: Final = 512 * 1024
_POLICY: Final = policy_of(allow=["GET,POST api.test/ok/*", "OPTIONS api.test"])
_GUEST, _SERVER, _GUEST_ENDS, _SERVER_ENDS, _TAKE, _ANSWER = range(6)
_OK: Final = b"GET /ok/a HTTP/1.1\r\nHost: api.test\r\n"
_REQUESTS: Final = (
    _OK + b"\r\n",
    b"POST /ok/b HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /ok/c HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\n\r\n",
    b"POST /ok/e HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    _OK + b"X-Token: {{FUZZED}}\r\nAuthorization: Basic e3tGVVpaRUR9fQ==\r\n\r\n",
    _OK + b"Connection: close, x-a\r\nX-A: b\r\n\r\n",
    _OK + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: c2l4dGVlbiBieXRlcyBvaw==\r\n\r\n",
    b"DELETE /ok/a HTTP/1.1\r\nHost: api.test\r\nContent-Length: 3\r\n\r\nabc",
    b"GET http://api.test/ok/a?b HTTP/1.0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: api.test:80\r\n\r\n",
    b"HEAD /ok/../b HTTP/1.1\r\nHost: api.test\r\n\r\n",
)
_RESPONSES: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: tQfvBcoX9b3/6Yd4HsA0E/SVXf4=\r\n\r\nframes",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70000,
)
_WORDS: Final = (
    b"GET ", b"POST ", b"TRACE ", b"CONNECT ", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b"\r\n", b"\n",
    b"\r\n\r\n", b"\r", b"\0", b"/ok/", b"/ok/../", b"%2e%2e", b"%2f", b"\\", b"//", b"*", b"#",
    b"Host: api.test\r\n", b"Host: evil.test\r\n", b"Content-Length: 5\r\n",
    b"Content_Length: 5\r\n", b"Content-Length: +5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"0\r\n\r\n", b"5\r\nhello\r\n", b"ffffffffffffffffffff\r\n", b"Expect: 100-continue\r\n",
    b"Connection: close\r\n", b"Connection: host\r\n", b"Upgrade: h2c\r\n", b"{{FUZZED}}",
    b"Authorization: x\r\n", b"X-HTTP-Method-Override: DELETE\r\n", b"X-Original-URL: /x\r\n",
    b"http://api.test/ok/", b"https://evil.test/", b" x: y\r\n", b"HTTP/1.1 200 OK\r\n",
    b"\x16\x03\x01\x00\x05", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)  # fmt: skip


def _steps(*steps: tuple[int, bytes]) -> bytes:
    """An input with these steps."""
    encoded = b""
    for kind, data in steps:
        encoded += bytes((kind,)) + len(data).to_bytes(2, "little") + data
    return encoded


class InspectedConnections(Target):
    """`Inspector`."""

    name = "inspect"
    about = "both sides of inspected connections"
    words = _WORDS
    longest = 32768

    def __init__(self) -> None:
        self._authority = Authority()
        self._context = verifying_context()

    def seeds(self) -> Iterable[bytes]:
        for number, request in enumerate(_REQUESTS):
            for answer in range(len(_RESPONSES)):
                yield _steps((_GUEST, request), (_ANSWER, bytes((answer,))), (_GUEST, request))
            yield _steps((_GUEST, request + _REQUESTS[number - 1]), (_ANSWER, b"\0"), (_TAKE, b""))
            yield _steps((_GUEST, request), (_GUEST_ENDS, b""), (_ANSWER, b"\1"))
        yield _steps((_GUEST, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), (_GUEST_ENDS, b""))
        yield _steps((_SERVER, b"SSH-2.0-x\r\n"))

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        if random.randrange(3) == 0:
            return (data + other)[: self.longest]
        return mutated(random, data, other, _WORDS, most=self.longest)

    def run(self, data: bytes) -> None:
        source = Source(data)
        seen: list[RequestSeen] = []
        inspector = Inspector(self._order(seen))
        to_guest, to_server = bytearray(), bytearray()

        def take() -> bool:
            before = len(to_guest) + len(to_server)
            for sent, taken in ((to_guest, inspector.for_guest), (to_server, inspector.for_server)):
                piece = taken()
                sent += piece
                if len(piece) > _HELD_MAX:
                    raise Finding("unbounded", f"{len(piece)} bytes were held")
            inspector.go_on()
            return len(to_guest) + len(to_server) > before

        while not source.ended:
            kind = source.byte() % 6
            piece = source.bytes(source.number(2))
            if kind == _GUEST and piece and inspector.wants_guest:
                inspector.guest_sent(piece)
            elif kind == _SERVER and piece and inspector.wants_server:
                inspector.server_sent(piece)
            elif kind == _ANSWER and inspector.wants_server:
                take()
                inspector.server_sent(_RESPONSES[(piece or b"\0")[0] % len(_RESPONSES)])
            elif kind == _GUEST_ENDS:
                inspector.guest_ended()
            elif kind == _SERVER_ENDS:
                inspector.server_ended()
            elif kind == _TAKE:
                take()
        inspector.guest_ended()
        inspector.server_ended()
        while take() or inspector.has_more:
            pass
        self._check(inspector, seen, bytes(to_guest), bytes(to_server))

    def _order(self, seen: list[RequestSeen]) -> InspectionOrder:
        def decide(method: str, path: str) -> Verdict:
            return _POLICY.decide_request("api.test", 80, method, path)

        return InspectionOrder(
            host="api.test",
            port=80,
            decide=decide,
            authority=self._authority,
            server_context=self._context,
            headers={"Authorization": f"Bearer {_SECRET}"},
            placeholders={_PLACEHOLDER: _SECRET},
            secrets_in_clear=True,
            on_request=seen.append,
        )

    def _check(
        self, inspector: Inspector, seen: list[RequestSeen], to_guest: bytes, to_server: bytes
    ) -> None:
        if _SECRET.encode() in to_guest:
            raise Finding("secret", f"the guest got the secret: {to_guest[:300]!r}")
        if _SECRET in repr(seen):
            raise Finding("secret", f"the log has the secret: {seen!r}")
        over = inspector.failure is not None or (inspector.guest_done and inspector.server_done)
        if not over or inspector.wants_guest or inspector.wants_server:
            raise Finding("not-over", f"both sides have ended; {seen!r}")
        if to_server[:1] != b"\x16":  # TLS hides what it carries
            _check_requests(to_server, any(event.status == 101 for event in seen))


def _check_requests(data: bytes, switched: bool) -> None:
    """Everything that the server got is an allowed request, or the end of the last one lacks."""
    while data:
        head, blank, rest = data.partition(b"\r\n\r\n")
        if not blank:
            raise Finding("requests", f"half a head was sent: {data[:300]!r}")
        lines = head.split(b"\r\n")
        if not re.fullmatch(rb"(?:(?:GET|POST) /ok/[!-~]*|OPTIONS [!-~]+) HTTP/1\.1", lines[0]):
            raise Finding("requests", f"a request that no rule allows: {head[:300]!r}")
        path = lines[0].split(b" ")[1].partition(b"?")[0]
        if lines[0].startswith((b"GET", b"POST")) and b"/../" in path + b"/":
            raise Finding("requests", f"a path that leads elsewhere: {head[:300]!r}")
        headers: dict[bytes, list[bytes]] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            if not colon or not re.fullmatch(rb"[!#-'*+\-.0-9A-Z^-z|~]+", name) or b"\n" in value:
                raise Finding("requests", f"a malformed header: {line[:300]!r}")
            headers.setdefault(name.lower(), []).append(value.strip())
        if headers.get(b"host") != [b"api.test"]:
            raise Finding("requests", f"another host: {head[:300]!r}")
        if headers.get(b"authorization") != [f"Bearer {_SECRET}".encode()]:
            raise Finding("requests", f"not the secret: {head[:300]!r}")
        if switched and b"upgrade" in headers:
            return
        lengths = headers.get(b"content-length", [])
        if b"transfer-encoding" in headers:
            if lengths or headers[b"transfer-encoding"] != [b"chunked"]:
                raise Finding("requests", f"two lengths: {head[:300]!r}")
            data = _after_chunks(rest)
        elif len(lengths) > 1 or not all(value.isdigit() for value in lengths):
            raise Finding("requests", f"an unclear length: {head[:300]!r}")
        else:
            data = rest[int(lengths[0]) if lengths else 0 :]


def _after_chunks(data: bytes) -> bytes:
    while True:
        line, end, rest = data.partition(b"\r\n")
        if not end:
            if line:
                raise Finding("requests", f"half a chunk: {line[:100]!r}")
            return b""
        size = int(line, 16)
        if size == 0:
            if not rest.startswith(b"\r\n"):
                raise Finding("requests", f"trailers: {rest[:100]!r}")
            return rest[2:]
        data = rest[size + 2 :]
