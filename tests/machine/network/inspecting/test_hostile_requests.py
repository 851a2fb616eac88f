"""A table of hostile requests, and what becomes of each.

The server behind the inspector counts every byte that it gets. Rules of the host: GET and POST
below /ok/ are allowed, and the host has a secret.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import pump, received
from tests.machine.network.inspecting.servers import SECONDS, echo_server, raw_server
from wasmsand.machine.network.policy import policy_of
from wasmsand.machine.network.rules import Verdict

pytestmark = pytest.mark.no_userland
SECRET = "sk-hostile-table-71c2"
HOST = b"Host: api.test\r\n"
OK = b" /ok/a HTTP/1.1\r\n" + HOST


POLICY = policy_of(allow=["GET,POST api.test/ok/*"])


def rules(method: str, path: str) -> Verdict:
    return POLICY.decide_request("api.test", 443, method, path)


@dataclass(frozen=True)
class Row:
    """A request, the status that the guest gets, and the targets that the server sees."""

    name: str
    request: bytes
    status: int
    reaches: tuple[str, ...] = ()


TABLE = (
    # The method.
    Row("method-not-allowed", b"DELETE" + OK + b"\r\n", 403),
    Row("method-in-lower-case", b"get" + OK + b"\r\n", 400),
    Row("method-that-echoes", b"TRACE" + OK + b"\r\n", 403),
    Row("method-that-echoes-old", b"TRACK" + OK + b"\r\n", 403),
    Row("method-connect", b"CONNECT api.test:443 HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("method-connect-elsewhere", b"CONNECT evil.test:443 HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("method-connect-to-a-path", b"CONNECT" + OK + b"\r\n", 403),
    Row("method-replaced", b"POST" + OK + b"X-HTTP-Method-Override: DELETE\r\n\r\n", 403),
    Row("method-replaced-underscore", b"GET" + OK + b"X_HTTP_Method_Override: PUT\r\n\r\n", 403),
    Row("method-replaced-lower", b"GET" + OK + b"X-Method-Override: delete\r\n\r\n", 400),
    Row("method-replaced-allowed", b"GET" + OK + b"X-HTTP-Method: POST\r\n\r\n", 200, ("/ok/a",)),
    Row("method-long", b"G" * 65 + OK + b"\r\n", 400),
    # The path.
    Row("path-not-allowed", b"GET /admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-dots", b"GET /ok/../admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-dots-encoded", b"GET /ok/%2e%2e/admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-slash-encoded", b"GET /ok/..%2fadmin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-encoded-twice", b"GET /ok/%252e%252e%252fadmin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-backslash", b"GET /ok/..\\admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-backslash-encoded", b"GET /ok/..%5cadmin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-parameters", b"GET /ok/..;/admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-overlong-utf-8", b"GET /ok/%c0%ae%c0%ae/admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-nul", b"GET /ok/%00/../admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-line-break", b"GET /ok/%0d%0aX:y HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-broken-escape", b"GET /ok/%zz HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-fragment", b"GET /ok/#/../admin HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Row("path-double-slash-host", b"GET //evil.test/ok/ HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-double-slash", b"GET /ok//a HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-inside", b"GET /ok/b/../a HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-replaced", b"GET" + OK + b"X-Original-URL: /admin\r\n\r\n", 400),
    Row("path-rewritten", b"GET" + OK + b"X_Rewrite_Url: /admin\r\n\r\n", 400),
    Row("path-relative", b"GET ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Row("path-star", b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("path-star-of-get", b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Row("query-is-no-path", b"GET /admin?/ok/ HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("query", b"GET /ok/a?x=/../%00 HTTP/1.1\r\n" + HOST + b"\r\n", 200, ("/ok/a?x=/../%00",)),
    # The host.
    Row("host-other", b"GET /ok/a HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421),
    Row("host-other-port", b"GET /ok/a HTTP/1.1\r\nHost: api.test:80\r\n\r\n", 421),
    Row("host-longer", b"GET /ok/a HTTP/1.1\r\nHost: api.test.evil.test\r\n\r\n", 421),
    Row("host-userinfo", b"GET /ok/a HTTP/1.1\r\nHost: api.test@evil.test\r\n\r\n", 421),
    Row("host-userinfo-of", b"GET /ok/a HTTP/1.1\r\nHost: evil.test@api.test\r\n\r\n", 421),
    Row("host-empty", b"GET /ok/a HTTP/1.1\r\nHost:\r\n\r\n", 421),
    Row("host-missing", b"GET /ok/a HTTP/1.1\r\n\r\n", 400),
    Row("host-twice", b"GET" + OK + b"Host: evil.test\r\n\r\n", 400),
    Row("host-twice-the-same", b"GET" + OK + HOST + b"\r\n", 400),
    Row("host-list", b"GET /ok/a HTTP/1.1\r\nHost: api.test, evil.test\r\n\r\n", 421),
    Row("host-blank", b"GET /ok/a HTTP/1.1\r\nHost : evil.test\r\n" + HOST + b"\r\n", 400),
    Row("host-folded", b"GET /ok/a HTTP/1.1\r\nHost: api.test\r\n .evil.test\r\n\r\n", 400),
    Row("host-dot", b"GET /ok/a HTTP/1.1\r\nHost: api.test.\r\n\r\n", 200, ("/ok/a",)),
    Row("host-port", b"GET /ok/a HTTP/1.1\r\nHost: api.test:443\r\n\r\n", 200, ("/ok/a",)),
    Row("host-dropped", b"GET" + OK + b"Connection: host\r\n\r\n", 400),
    Row("url", b"GET https://api.test/ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 200, ("/ok/a",)),
    Row("url-other-host", b"GET https://evil.test/ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 421),
    Row("url-other-scheme", b"GET http://api.test/ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 421),
    Row("url-strange-scheme", b"GET file:///ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 421),
    Row("url-userinfo", b"GET https://a@api.test/ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 421),
    Row("url-other-path", b"GET https://api.test/admin HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("url-only-host", b"GET https://api.test HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    Row("url-query", b"GET https://api.test?/ok/ HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    # Two readings of where the request ends.
    Row("cl-twice", b"POST" + OK + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n", 400),
    Row("cl-twice-same", b"POST" + OK + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400),
    Row("cl-list", b"POST" + OK + b"Content-Length: 0, 0\r\n\r\n", 400),
    Row("cl-plus", b"POST" + OK + b"Content-Length: +0\r\n\r\n", 400),
    Row("cl-hex", b"POST" + OK + b"Content-Length: 0x0\r\n\r\n", 400),
    Row("cl-negative", b"POST" + OK + b"Content-Length: -1\r\n\r\n", 400),
    Row("cl-huge", b"POST" + OK + b"Content-Length: 9999999999999999999\r\n\r\n", 400),
    Row("cl-underscore", b"POST" + OK + b"Content_Length: 5\r\nContent-Length: 0\r\n\r\n", 400),
    Row(
        "cl-and-te", b"POST" + OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400
    ),
    Row("te-twice", b"POST" + OK + 2 * b"Transfer-Encoding: chunked\r\n" + b"\r\n", 400),
    Row("te-list", b"POST" + OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
    Row("te-identity", b"POST" + OK + b"Transfer-Encoding: identity\r\n\r\n", 400),
    Row("te-hidden", b"POST" + OK + b"Transfer-Encoding: xchunked\r\n\r\n", 400),
    Row("te-tab", b"POST" + OK + b"Transfer-Encoding:\x0bchunked\r\n\r\n", 400),
    Row("te-underscore", b"POST" + OK + b"Transfer_Encoding: chunked\r\n\r\n", 400),
    Row(
        "te-of-1.0", b"POST /ok/a HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", 400
    ),
    Row("te-dropped", b"POST" + OK + b"Connection: transfer-encoding\r\n\r\n", 400),
    Row("chunk-bad", b"POST" + OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    Row("chunk-negative", b"POST" + OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
    Row(
        "chunk-extension",
        b"POST" + OK + b"Transfer-Encoding: chunked\r\n\r\n1;GET /admin\r\nx\r\n0\r\n\r\n",
        200,
        ("/ok/a",),
    ),
    Row(
        "chunk-trailer",
        b"POST" + OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.test\r\n\r\n",
        200,
        ("/ok/a",),
    ),
    Row(
        "body-like-a-request",
        b"POST" + OK + b"Content-Length: 35\r\n\r\nGET /admin HTTP/1.1\r\nHost: x.test\r\n\r\n",
        200,
        ("/ok/a",),
    ),
    Row(
        "body-of-get",
        b"GET" + OK + b"Content-Length: 25\r\n\r\nGET /admin HTTP/1.1\r\n\r\nxx",
        200,
        ("/ok/a",),
    ),
    Row(
        "refused-body-like-a-request",
        b"PUT" + OK + b"Content-Length: 38\r\n\r\nGET /ok/smuggled HTTP/1.1\r\nHost: a.b\r\n\r\n",
        403,
    ),
    # The form of the head.
    Row("bare-line-feeds", b"GET /ok/a HTTP/1.1\nHost: api.test\n\n", 400),
    Row("one-bare-line-feed", b"GET /ok/a HTTP/1.1\r\nHost: api.test\nX: y\r\n\r\n", 400),
    Row("bare-carriage-return", b"GET" + OK + b"X: a\rY: b\r\n\r\n", 400),
    Row("nul", b"GET" + OK + b"X: a\x00b\r\n\r\n", 400),
    Row("folded", b"GET" + OK + b"X: a\r\n\tb\r\n\r\n", 400),
    Row("name-empty", b"GET" + OK + b": x\r\n\r\n", 400),
    Row("name-without-colon", b"GET" + OK + b"nothing\r\n\r\n", 400),
    Row("first-line-blanks", b"GET  /ok/a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Row("first-line-tab", b"GET\t/ok/a\tHTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Row("first-line-short", b"GET /ok/a\r\n\r\n", 400),
    Row("leading-blank", b" GET" + OK + b"\r\n", 400),
    Row("empty-lines-first", b"\r\n\r\nGET" + OK + b"\r\n", 200, ("/ok/a",)),
    Row("version-2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    Row("version-0.9", b"GET /ok/a HTTP/0.9\r\n" + HOST + b"\r\n", 505),
    Row("version-long", b"GET /ok/a HTTP/1.10\r\n" + HOST + b"\r\n", 400),
    Row("many-headers", b"GET" + OK + b"a: b\r\n" * 300 + b"\r\n", 431),
    Row("long-header", b"GET" + OK + b"X: " + b"y" * 70000 + b"\r\n\r\n", 431),
    Row("head-without-end", b"GET" + OK + b"X: " + b"y" * 70000, 431),
    Row("long-target", b"GET /ok/" + b"a" * 70000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 431),
    Row("high-bytes", b"GET" + OK + b"X: \xff\xfe\r\n\r\n", 200, ("/ok/a",)),
    Row("expectation-unknown", b"POST" + OK + b"Expect: miracles\r\n\r\n", 417),
    Row("garbage", b"\x00\x01\x02\x03\r\n\r\n", 400),
    Row("ssh", b"SSH-2.0-client\r\n\r\n", 400),
    # A second request on the same connection.
    Row(
        "second-to-another-host",
        b"GET" + OK + b"\r\nGET /ok/b HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        200,
        ("/ok/a",),
    ),
    Row(
        "second-not-allowed",
        b"GET" + OK + b"\r\nGET /admin HTTP/1.1\r\n" + HOST + b"\r\n",
        200,
        ("/ok/a",),
    ),
)


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_what_becomes_of_a_hostile_request(private_authority: PrivateAuthority, row: Row) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(
            echo.port,
            ca_file=private_authority.ca_file,
            decide=rules,
            headers={"Authorization": f"Bearer {SECRET}"},
        ) as joint,
        joint.connect_tls() as guest,
    ):
        # A last request that ends the connection; where it is answered, the rest was understood.
        guest.sendall(row.request + b"GET /ok/last HTTP/1.1\r\nHost: api.test\r\n"
                      b"Connection: close\r\n\r\n")  # fmt: skip
        answer = received(guest)
    assert answer.startswith(b"HTTP/1.1 %d " % row.status), answer[:300]
    reached = [request[1] for request in echo.requests]
    assert tuple(path for path in reached if path != "/ok/last") == row.reaches
    assert all(request[2]["host"] == ["api.test"] for request in echo.requests)
    assert all(request[2]["authorization"] == [f"Bearer {SECRET}"] for request in echo.requests)
    assert SECRET.encode() not in answer
    assert SECRET not in repr(joint.seen)


def test_rows_have_different_names() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize("part", [b"GET /ok/", b"GET" + OK, b"GET" + OK + b"X: y\r\n"])
def test_a_request_that_never_ends_takes_a_bounded_amount(part: bytes) -> None:
    """The guest may be as slow as it likes: it uses one of its own connections."""
    with (
        echo_server() as echo,
        pump(echo.port, port=80, decide=rules) as joint,
        joint.connect() as guest,
    ):
        for byte in part:
            guest.sendall(bytes((byte,)))
        guest.shutdown(socket.SHUT_WR)
        assert received(guest) == b""
    assert echo.requests == []


def test_a_guest_that_does_not_read_stops_the_server() -> None:
    sent = 0
    stopped = threading.Event()

    def handle(connection: socket.socket) -> None:
        nonlocal sent
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.settimeout(0.5)
        try:
            while True:
                sent += connection.send(b"x" * 65536)
        except TimeoutError:
            stopped.set()

    with raw_server(handle) as port, pump(port, port=80) as joint, joint.connect() as guest:
        guest.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        assert stopped.wait(SECONDS)
        got = received(guest)
    assert sent < 32 * 1024 * 1024  # what loopback's own buffers hold
    assert len(got) > sent
