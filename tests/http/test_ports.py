"""Servers in sandboxes behind `wasmsand serve`: requests, WebSockets, streams, hostile guests."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as connect_websocket

from tests.http.port_guests import RAW, WEBSOCKET
from tests.http.server import Answer, Client, ServerProcess, serving
from tests.waiting import wait_until
from wasmsand import Sandbox

ALICE, BOB = "alice-has-a-token-of-her-own", "bob-has-another-token-here"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module", params=["none", "process"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    workers = "2" if request.param == "none" else "1"
    tokens = {"WASMSAND_TOKENS": f"alice:{ALICE},bob:{BOB}"}
    options = ("--isolation", request.param, "--port-idle-seconds", "3", "--grace-seconds", "2")
    with serving("--workers", workers, *options, environ=tokens) as server:
        yield server


@pytest.fixture(scope="module")
def guest(server: ServerProcess) -> Guest:
    """A sandbox with both servers."""
    client = Client(server.url, ALICE)
    guest = Guest(client, client.create())
    guest.start("raw.py", RAW, 8000)
    guest.start("websocket.py", WEBSOCKET, 8001)
    return guest


class Guest:
    """A sandbox, as a client without our SDK sees it."""

    def __init__(self, client: Client, path: str) -> None:
        self.client = client
        self.path = path

    def start(self, name: str, program: str, port: int) -> None:
        """Start a program, and wait until it listens."""
        self.put(name, program.encode())
        command = {"command": ["python3", name], "timeout_ms": None}
        assert self.client.ask("POST", f"{self.path}/commands", command).status == 201
        answer = self.client.ask("GET", f"{self.path}/listening/{port}?wait_ms=20000")
        assert answer.json == {"port": port, "listens": True}

    def put(self, name: str, content: bytes) -> None:
        answer = self.client.ask("PUT", f"{self.path}/files?path={name}", body=content)
        assert answer.status == 200

    def has(self, name: str) -> bool:
        return self.client.ask("GET", f"{self.path}/files?path={name}").status == 200

    def remove(self, name: str) -> None:
        self.client.ask("DELETE", f"{self.path}/files?path={name}")

    def seen(self) -> list[str]:
        """The lines of the last request that the guest got."""
        body = self.client.ask("GET", f"{self.path}/files?path=seen").body
        return body.decode("latin-1").split("\r\n")

    def get(self, path: str, method: str = "GET", **options: Any) -> Answer:
        return self.client.ask(method, f"{self.path}/ports/8000{path}", **options)

    def reply(self, reply: bytes, path: str = "/", method: str = "GET") -> Answer:
        """What the client gets if the guest sends `reply`."""
        self.put("reply", reply)
        return self.get(path, method)

    @property
    def websocket(self) -> str:
        return self.client.url.replace("http", "ws", 1) + f"{self.path}/ports/8001"


def test_listeners_are_listed_and_waited_for(guest: Guest) -> None:
    found = guest.client.ask("GET", f"{guest.path}/listening").json["ports"]
    assert [(item["port"], item["address"]) for item in found] == [
        (8000, "127.0.0.1"),
        (8001, "127.0.0.1"),
    ]
    began = time.monotonic()
    answer = guest.client.ask("GET", f"{guest.path}/listening/9?wait_ms=200")
    assert answer.json == {"port": 9, "listens": False}
    assert time.monotonic() - began >= 0.2


def test_a_request_reaches_the_guest_as_it_came_but_without_the_token(guest: Guest) -> None:
    guest.put("reply", OK)
    answer = guest.get("/a%2Fb/../c;d?x=1&y=%20&x=2", headers={"X-Mine": "yes", "Cookie": "a=b"})
    assert (answer.status, answer.body) == (200, b"ok")
    lines = guest.seen()
    assert lines[0] == "GET /a%2Fb/../c;d?x=1&y=%20&x=2 HTTP/1.1"
    assert {"host: localhost:8000", "x-mine: yes", "cookie: a=b"} <= set(lines)
    netloc = urlsplit(guest.client.url).netloc
    assert f"x-forwarded-host: {netloc}" in lines
    assert f"x-forwarded-prefix: {guest.path}/ports/8000" in lines
    assert ALICE not in "\n".join(lines)
    assert not any(line.startswith("authorization") for line in lines)


def test_headers_of_one_connection_and_of_proxies_are_not_passed_on(guest: Guest) -> None:
    guest.put("reply", OK)
    sent = {
        "Connection": "keep-alive, X-Secret-Hop",
        "X-Secret-Hop": "1",
        "Keep-Alive": "timeout=5",
        "TE": "trailers",
        "Proxy-Authorization": "Basic eDp5",
        "X-Forwarded-For": "1.2.3.4",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "for=1.2.3.4",
        "Upgrade": "h2c",
    }
    assert guest.get("/", headers=sent).status == 200
    text = "\n".join(guest.seen()).lower()
    for word in ("secret-hop", "keep-alive", "trailers", "basic", "1.2.3.4", "evil", "h2c"):
        assert word not in text
    assert "connection: close" in text


def test_authorization_is_for_the_guest_if_the_token_has_a_header_of_its_own(guest: Guest) -> None:
    guest.put("reply", OK)
    headers = {"X-Wasmsand-Token": ALICE, "Authorization": "Basic Z3Vlc3Q6"}
    assert guest.get("/", headers=headers).status == 200
    lines = guest.seen()
    assert "authorization: Basic Z3Vlc3Q6" in lines
    assert ALICE not in "\n".join(lines)
    wrong = {"X-Wasmsand-Token": "wrong", "Authorization": f"Bearer {ALICE}"}
    assert guest.get("/", headers=wrong).status == 401
    # Only for ports: the API itself takes no token from there.
    strange = Client(guest.client.url)
    assert strange.ask("GET", guest.path, headers={"X-Wasmsand-Token": ALICE}).status == 401


@pytest.mark.parametrize("path", ["", "/", "?q=1"])
def test_the_port_itself_is_the_guests_root(guest: Guest, path: str) -> None:
    guest.put("reply", OK)
    assert guest.get(path).body == b"ok"
    assert guest.seen()[0] == f"GET /{path.removeprefix('/')} HTTP/1.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods_are_passed_on(guest: Guest, method: str) -> None:
    assert guest.reply(OK, "/x", method).body == b"ok"
    assert guest.seen()[0] == f"{method} /x HTTP/1.1"


def test_head_has_no_body(guest: Guest) -> None:
    answer = guest.reply(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", "/x", "HEAD")
    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "2000", b"")
    assert guest.seen()[0] == "HEAD /x HTTP/1.1"


def test_status_cookies_and_redirects_come_as_they_are(guest: Guest) -> None:
    target = "/v1/sandboxes"
    answer = guest.reply(
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere?x\r\nSet-Cookie: a=b; Path=/\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    assert (answer.status, answer.headers["location"]) == (302, "/elsewhere?x")
    assert answer.headers["set-cookie"] == "a=b; Path=/"
    assert target not in answer.headers["location"]
    assert guest.reply(b"HTTP/1.1 404 Not Found\r\n\r\ngone").body == b"gone"
    assert guest.reply(b"HTTP/1.1 204 No Content\r\n\r\n").status == 204


def test_pages_are_confined_because_the_api_has_the_same_origin(guest: Guest) -> None:
    answer = guest.reply(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nService-Worker-Allowed: /\r\n"
        b"Strict-Transport-Security: max-age=1\r\nClear-Site-Data: *\r\nAlt-Svc: x\r\n"
        b"Content-Length: 2\r\n\r\nok"
    )
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    names = {name.lower() for name in answer.headers}
    assert not names & {
        "service-worker-allowed", "strict-transport-security", "clear-site-data", "alt-svc",
    }  # fmt: skip


def test_chunked_bodies_are_framed_anew(guest: Guest) -> None:
    answer = guest.get("/chunked")
    assert (answer.body, answer.headers["Transfer-Encoding"]) == (b"abcdefg", "chunked")


def test_bodies_are_streamed_in_both_directions(guest: Guest) -> None:
    guest.remove("on")
    connection = _connection(guest)
    connection.request("GET", f"{guest.path}/ports/8000/first", headers=_token())
    response = connection.getresponse()
    assert response.read(5) == b"first"  # the rest is sent only after this
    guest.put("on", b"")
    assert response.read() == b"second"
    connection.request(
        "POST",
        f"{guest.path}/ports/8000/chunked-request",
        iter([b"one", b"two"]),
        _token(),
        encode_chunked=True,
    )
    chunks = connection.getresponse().read().split(b"\r\n")  # sizes and data by turns
    assert (b"".join(chunks[1::2]), chunks[-3]) == (b"onetwo", b"0")
    connection.close()


def test_a_large_upload_is_passed_on(guest: Guest) -> None:
    answer = guest.get("/upload", "POST", body=bytes(20_000_000))
    assert answer.body == b"20000000"


def test_a_guest_that_answers_early_is_heard(guest: Guest) -> None:
    connection = _connection(guest)
    connection.putrequest("POST", f"{guest.path}/ports/8000/early")
    connection.putheader("Authorization", f"Bearer {ALICE}")
    connection.putheader("Content-Length", "100000000")
    connection.endheaders(b"only the beginning")
    response = connection.getresponse()
    assert (response.status, response.read()) == (413, b"large")
    connection.close()


def test_a_slow_guest_is_waited_for(guest: Guest) -> None:
    assert guest.get("/slow").body == b"abcdef"


MALFORMED = {
    "no http": b"220 mail.example.com ESMTP\r\n\r\n",
    "nothing": b"",
    "half a header": b"HTTP/1.1 200 OK\r\nContent-",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
    "a name with a space": b"HTTP/1.1 200 OK\r\nX y: z\r\n\r\nok",
    "a NUL in a value": b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\nok",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\nok",
    "a status beyond 599": b"HTTP/1.1 700 What\r\n\r\nok",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\nok",
    "a long header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\nok",
    "an uninvited switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\n\r\nwhatever",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_response_is_a_bad_gateway(guest: Guest, case: str) -> None:
    answer = guest.reply(MALFORMED[case])
    assert (answer.status, answer.json["error"]["code"]) == (502, "bad_gateway")
    assert guest.reply(OK).body == b"ok"


@pytest.mark.parametrize("path", ["/endless-header", "/endless-early"])
def test_an_endless_header_is_a_bad_gateway(guest: Guest, path: str) -> None:
    answer = guest.get(path)
    assert (answer.status, answer.json["error"]["code"]) == (502, "bad_gateway")


def test_a_second_response_is_not_passed_on(guest: Guest) -> None:
    """Response splitting: what follows a response is dropped, and the connection stays usable."""
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    connection = _connection(guest)
    guest.put("reply", OK + forged)
    for _ in range(3):
        connection.request("GET", f"{guest.path}/ports/8000/", headers=_token())
        assert connection.getresponse().read() == b"ok"
    connection.request("GET", guest.path, headers=_token())
    assert b"forged" not in connection.getresponse().read()
    connection.close()


def test_line_breaks_in_values_do_not_make_headers(guest: Guest) -> None:
    answer = guest.reply(b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nY: \xff\r\nContent-Length: 2\r\n\r\nok")
    assert (answer.status, answer.headers["x"]) == (200, "a b")


def test_a_body_that_breaks_off_is_noticed_by_the_client(guest: Guest) -> None:
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        guest.get("/reset")


def test_a_silent_guest_is_given_up(guest: Guest) -> None:
    guest.remove("ended")
    answer = guest.get("/silent")
    assert (answer.status, answer.json["error"]["code"]) == (504, "port_timeout")
    wait_until(lambda: guest.has("ended"))


def test_a_client_that_leaves_ends_the_guests_connection(guest: Guest) -> None:
    guest.remove("ended")
    connection = _connection(guest)
    connection.request("GET", f"{guest.path}/ports/8000/silent", headers=_token())
    time.sleep(0.3)
    connection.close()
    wait_until(lambda: guest.has("ended"))


def test_a_client_that_does_not_read_makes_the_guest_wait(guest: Guest) -> None:
    guest.remove("ended")
    connection = _connection(guest)
    connection.request("GET", f"{guest.path}/ports/8000/endless-body", headers=_token())
    response = connection.getresponse()
    assert response.read(1000) == bytes(1000)
    counts: list[bytes] = []

    def stands_still() -> bool:
        counts.append(guest.client.ask("GET", f"{guest.path}/files?path=count").body)
        return len(counts) > 3 and len(set(counts[-3:])) == 1

    wait_until(stands_still, pause=0.1)
    assert int(counts[-1]) < 30_000_000
    response.close()
    connection.close()
    wait_until(lambda: guest.has("ended"))


def test_many_requests_at_once(guest: Guest) -> None:
    guest.put("reply", OK)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: guest.get("/").body, range(100)))
    assert answers == [b"ok"] * 100


def test_a_port_without_a_server_is_a_bad_gateway(guest: Guest) -> None:
    answer = guest.client.ask("GET", f"{guest.path}/ports/9/x")
    assert answer.error == (502, "port_error", "ECONNREFUSED: nothing listens on port 9")
    assert answer.json["error"]["errno"] == "ECONNREFUSED"


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "1e3", "%F0%9F%92%A9", "٣"])
def test_a_port_that_is_none_is_refused(guest: Guest, port: str) -> None:
    quoted = port if port.isascii() else "%D9%A3"
    answer = guest.client.ask("GET", f"{guest.path}/ports/{quoted}/")
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_value")


def test_encoded_slashes_before_the_port_are_refused(guest: Guest) -> None:
    identity = guest.path.rpartition("/")[2]
    answer = guest.client.ask("GET", f"/v1/sandboxes/{identity}/ports%2F8000/x")
    assert answer.status in (400, 404)


def test_only_the_owner_reaches_a_port(guest: Guest) -> None:
    for token, status in ((BOB, 404), ("wrong", 401), (None, 401)):
        other = Client(guest.client.url, token)
        assert other.ask("GET", f"{guest.path}/ports/8000/").status == status
        assert other.ask("GET", f"{guest.path}/listening").status == status
        headers = {"Connection": "Upgrade", "Upgrade": "wasmsand-stream"}
        answer = other.ask("POST", f"{guest.path}/tunnels/8000", headers=headers)
        assert answer.status == status


# WebSockets and streams.


def test_a_websocket_echoes(guest: Guest) -> None:
    with connect_websocket(f"{guest.websocket}/chat?x=1", additional_headers=_token()) as socket_:
        for message in ("hello", "ü" * 1000, b"\0" * 100_000):
            socket_.send(message)
            assert socket_.recv(30) == message
    lines = guest.seen()
    assert lines[0] == "GET /chat?x=1 HTTP/1.1"
    assert ALICE not in "\n".join(lines)


def test_what_a_guest_sends_with_its_switch_arrives(guest: Guest) -> None:
    with connect_websocket(f"{guest.websocket}/greet", additional_headers=_token()) as socket_:
        assert socket_.recv(30) == "hello"


def test_a_refused_websocket_is_an_ordinary_response(guest: Guest) -> None:
    with pytest.raises(InvalidStatus) as caught:
        connect_websocket(f"{guest.websocket}/refuse", additional_headers=_token())
    assert (caught.value.response.status_code, caught.value.response.body) == (403, b"no")


def test_a_websocket_without_a_token_is_refused(guest: Guest) -> None:
    with pytest.raises(InvalidStatus) as caught:
        connect_websocket(guest.websocket)
    assert caught.value.response.status_code == 401


def test_an_idle_websocket_is_closed(guest: Guest) -> None:
    with connect_websocket(
        guest.websocket, additional_headers=_token(), ping_interval=None
    ) as socket_:
        socket_.send("x")
        assert socket_.recv(30) == "x"
        with pytest.raises(ConnectionClosed):
            socket_.recv(30)


def test_a_stream_needs_an_upgrade(guest: Guest) -> None:
    answer = guest.client.ask("POST", f"{guest.path}/tunnels/8000")
    assert (answer.status, answer.json["error"]["code"]) == (426, "upgrade_required")
    headers = {"Upgrade": "wasmsand-stream"}  # without `Connection`
    answer = guest.client.ask("POST", f"{guest.path}/tunnels/8000", headers=headers)
    assert (answer.status, answer.json["error"]["code"]) == (426, "upgrade_required")


def test_a_stream_carries_bytes_that_came_with_the_request(guest: Guest) -> None:
    guest.put("reply", OK)
    parts = urlsplit(guest.client.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as connection:
        connection.sendall(
            f"POST {guest.path}/tunnels/8000 HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Authorization: Bearer {ALICE}\r\nConnection: Upgrade\r\nUpgrade: wasmsand-stream\r\n"
            "Content-Length: 0\r\n\r\nGET / HTTP/1.0\r\n\r\n".encode()
        )
        got = b""
        while data := connection.recv(65536):
            got += data
    head, _, rest = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert rest == OK


_LAST_BYTES = """
import socket
l = socket.create_server(("127.0.0.1", 8002))
while True:
    c, _ = l.accept()
    if c.recv(4) == b"send":
        c.sendall(bytes(1_000_000))
    else:
        c.shutdown(socket.SHUT_WR)
        got = 4
        while data := c.recv(1 << 16): got += len(data)
        open("got", "w").write(str(got))
    c.close()
"""


def test_the_last_bytes_of_a_stream_arrive(server: ServerProcess) -> None:
    """Also if one side is slower than all that is between them."""
    with Sandbox.connect(server.url, token=ALICE) as sandbox:
        sandbox.files.write("last.py", _LAST_BYTES)
        sandbox.commands.start("exec python3 last.py")
        sandbox.ports.wait(8002)
        for _ in range(3):
            with sandbox.ports.connect(8002) as stream:
                stream.write("send")
                stream.finish()
                got = 0
                while data := stream.read(1 << 14):
                    got += len(data)
                    time.sleep(0.005)
                assert got == 1_000_000
            with sandbox.ports.connect(8002) as stream:
                stream.write("take")
                assert stream.read() == b""  # the guest sends nothing
                stream.write(bytes(1_000_000))
                stream.finish()
                wait_until(lambda: sandbox.files.exists("got"), seconds=60)
                wait_until(lambda: sandbox.files.read("got") != b"", seconds=60)
                assert sandbox.files.read("got") == b"1000004"
                sandbox.files.rm("got")


_CLOSES_FIRST = """
import socket
l = socket.create_server(("127.0.0.1", 8003))
while True:
    c, _ = l.accept()
    assert c.recv(4) == b"send"
    c.sendall(bytes(1_000_000))
    c.close()
    open("closed", "w").close()
"""


def test_a_guest_that_closes_first_is_heard_to_its_end(server: ServerProcess) -> None:
    """Also if the client goes on sending, and has not read anything yet."""
    parts = urlsplit(server.url)
    with Sandbox.connect(server.url, token=ALICE) as sandbox:
        sandbox.files.write("first.py", _CLOSES_FIRST)
        sandbox.commands.start("exec python3 first.py")
        sandbox.ports.wait(8003)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect((parts.hostname or "", parts.port or 0))
            connection.sendall(
                f"POST /v1/sandboxes/{sandbox.id}/tunnels/8003 HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                f"Authorization: Bearer {ALICE}\r\nConnection: Upgrade\r\n"
                "Upgrade: wasmsand-stream\r\nContent-Length: 0\r\n\r\nsend".encode()
            )
            wait_until(lambda: sandbox.files.exists("closed"), seconds=60)
            connection.sendall(bytes(1_000_000))
            got = b""
            while data := connection.recv(65536):
                got += data
        head, _, rest = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert rest == bytes(1_000_000)


def test_a_killed_sandbox_ends_requests_and_streams(server: ServerProcess) -> None:
    client = Client(server.url, ALICE)
    guest = Guest(client, client.create())
    guest.start("raw.py", RAW, 8000)
    guest.start("websocket.py", WEBSOCKET, 8001)
    with connect_websocket(
        guest.websocket, additional_headers=_token(), ping_interval=None
    ) as socket_:
        socket_.send("x")
        assert socket_.recv(30) == "x"
        connection = _connection(guest)
        connection.request("GET", f"{guest.path}/ports/8000/endless-body", headers=_token())
        response = connection.getresponse()
        assert response.read(10) == bytes(10)
        assert client.ask("DELETE", guest.path).status == 200
        with pytest.raises(ConnectionClosed):
            socket_.recv(30)
        # Its body has no length, so its end is that of the connection.
        while response.read(1 << 20):
            pass
        connection.close()
    assert client.ask("GET", f"{guest.path}/ports/8000/").status == 404


def test_connections_to_ports_are_bounded() -> None:
    options = ("--max-port-connections", "3", "--grace-seconds", "2")
    with serving(*options) as server:
        client = Client(server.url)
        guest = Guest(client, client.create())
        guest.start("raw.py", RAW, 8000)
        guest.put("reply", OK)
        connections = [_connection(guest) for _ in range(3)]
        for connection in connections:
            connection.request("GET", f"{guest.path}/ports/8000/silent")
        wait_until(lambda: b"wasmsand_port_connections 3.0" in client.ask("GET", "/metrics").body)
        answer = guest.get("/")
        assert (answer.status, answer.json["error"]["code"]) == (503, "busy")
        for connection in connections:
            connection.close()
        wait_until(lambda: guest.get("/").status == 200)


def test_the_server_ends_while_websockets_are_open() -> None:
    server = ServerProcess("--grace-seconds", "2")
    client = Client(server.url)
    guest = Guest(client, client.create())
    guest.start("websocket.py", WEBSOCKET, 8001)
    with connect_websocket(guest.websocket, ping_interval=None) as socket_:
        socket_.send("x")
        assert socket_.recv(30) == "x"
        began = time.monotonic()
        status, errors = server.terminate()
        assert (status, errors) == (0, "")
        assert time.monotonic() - began < 30


def test_web_pages_cannot_use_ports_of_a_server_without_tokens() -> None:
    with serving("--grace-seconds", "2") as server:
        client = Client(server.url)
        guest = Guest(client, client.create())
        guest.start("raw.py", RAW, 8000)
        guest.put("reply", OK)
        assert guest.get("/").status == 200
        assert guest.get("/", headers={"Origin": "http://evil.example"}).status == 403
        assert guest.get("/", headers={"Origin": "null"}).status == 403
        assert guest.get("/", headers={"Host": "rebound.example"}).status == 403
        # A token that a client sends anyway is not the guest's either.
        assert guest.get("/", headers={"Authorization": "Bearer of-another-server"}).status == 200
        assert "of-another-server" not in "\n".join(guest.seen())


def _connection(guest: Guest) -> http.client.HTTPConnection:
    parts = urlsplit(guest.client.url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)


def _token() -> dict[str, str]:
    return {"Authorization": f"Bearer {ALICE}"}
