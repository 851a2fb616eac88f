"""Ordinary requests reach the host through an inspector, by TLS and without."""

from __future__ import annotations

import socket
from functools import partial

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import Answer, anything, pump, received
from tests.machine.network.inspecting.servers import answering, echo_server, raw_server
from wasmsand.machine.network.inspecting.authority import Authority
from wasmsand.machine.network.inspecting.contexts import verifying_context
from wasmsand.machine.network.inspecting.inspector import Inspector
from wasmsand.machine.network.inspecting.order import InspectionOrder
from wasmsand.machine.network.policy import policy_of

pytestmark = pytest.mark.no_userland


def test_requests_of_one_connection_reach_the_host_by_tls(
    private_authority: PrivateAuthority,
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        client = joint.client()
        answers = []
        for method, body in (("GET", None), ("POST", b"content"), ("PUT", b""), ("DELETE", None)):
            client.request(method, "/thing?q=1", body)
            response = client.getresponse()
            answers.append((response.status, response.read()))
        client.close()
    assert answers == [
        (200, b"GET /thing?q=1 0\n"),
        (200, b"POST /thing?q=1 7\n"),
        (200, b"PUT /thing?q=1 0\n"),
        (200, b"DELETE /thing?q=1 0\n"),
    ]
    assert {request[2]["host"][0] for request in echo.requests} == {"api.test"}
    assert [(seen.method, seen.path, seen.status, seen.allowed) for seen in joint.seen] == [
        ("GET", "/thing", 200, True),
        ("POST", "/thing", 200, True),
        ("PUT", "/thing", 200, True),
        ("DELETE", "/thing", 200, True),
    ]
    assert [(seen.sent, seen.received) for seen in joint.seen][:2] == [(0, 17), (7, 18)]


def test_a_host_without_tls_is_reached_without_tls() -> None:
    with echo_server() as echo, pump(echo.port, port=80) as joint:
        answer = joint.exchange(b"GET /a HTTP/1.1\r\nHost: API.test\r\n\r\n", tls=False)
    assert answer.endswith(b"GET /a 0\n")
    assert echo.requests[0][2]["host"] == ["api.test"]


def test_another_port_is_part_of_the_host(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, port=8443) as joint,
    ):
        client = joint.client(port=8443)
        client.request("GET", "/")
        assert client.getresponse().read() == b"GET / 0\n"
        client.close()
    assert echo.requests[0][2]["host"] == ["api.test:8443"]


def test_chunked_bodies_pass_in_both_directions(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        client = joint.client()
        client.request("POST", "/chunked", iter([b"one", b"", b"two" * 1000]), encode_chunked=True)
        response = client.getresponse()
        assert response.read() == b"POST /chunked 3003\nsecond\n"
        assert response.headers["Transfer-Encoding"] == "chunked"
        client.request("GET", "/next")
        assert client.getresponse().read() == b"GET /next 0\n"
        client.close()
    assert echo.requests[0][3] == b"one" + b"two" * 1000


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_bytes_may_arrive_in_any_pieces(private_authority: PrivateAuthority, piece: int) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, piece=piece) as joint,
    ):
        client = joint.client()
        client.request("POST", "/chunked", b"x" * 500)
        assert client.getresponse().read() == b"POST /chunked 500\nsecond\n"
        client.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("HEAD", "/a", 200), ("GET", "/status/204", 204), ("GET", "/status/304", 304)],
)
def test_responses_without_a_body_leave_the_connection_usable(
    private_authority: PrivateAuthority, method: str, path: str, status: int
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        client = joint.client()
        client.request(method, path)
        response = client.getresponse()
        assert (response.status, response.read()) == (status, b"")
        if method == "HEAD":
            assert response.headers["Content-Length"] == "10"
        client.request("GET", "/next")
        assert client.getresponse().read() == b"GET /next 0\n"
        client.close()


def test_large_bodies_pass_with_little_memory(private_authority: PrivateAuthority) -> None:
    size = 8 * 1024 * 1024
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        client = joint.client()
        client.request("POST", "/up", b"y" * size)
        assert client.getresponse().read() == f"POST /up {size}\n".encode()
        client.request("GET", f"/large/{size}")
        assert client.getresponse().read() == b"x" * size
        client.close()
    # The pump checks what is held after each step.
    assert joint.most_held > 16384
    assert [(seen.sent, seen.received) for seen in joint.seen] == [(size, 17), (0, size)]


def test_pipelined_requests_are_answered_in_order(private_authority: PrivateAuthority) -> None:
    def decide(_method: str, path: str) -> Answer:
        return Answer(path != "/no", "not that")

    requests = b"".join(
        b"%s HTTP/1.1\r\nHost: api.test\r\n%s\r\n" % (line, more)
        for line, more in (
            (b"GET /1", b""),
            (b"POST /no", b"Content-Length: 0\r\n"),
            (b"GET /3", b""),
            (b"GET /4", b"Connection: close\r\n"),
        )
    )
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, decide=decide) as joint,
    ):
        answer = joint.exchange(requests)
    places = [
        answer.index(text)
        for text in (b"GET /1 0", b"wasmsand: not that", b"GET /3 0", b"GET /4 0")
    ]
    assert places == sorted(places)
    assert [request[1] for request in echo.requests] == ["/1", "/3", "/4"]


def test_an_expectation_is_answered_by_the_host() -> None:
    def handle(connection: socket.socket) -> None:
        head = connection.recv(65536)
        assert b"expect: 100-continue" in head.lower()
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with raw_server(handle) as port, pump(port, port=80) as joint, joint.connect() as guest:
        guest.sendall(
            b"POST / HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\n"
            b"Content-Length: 5\r\n\r\n"
        )
        assert guest.recv(65536).startswith(b"HTTP/1.1 100 ")
        guest.sendall(b"hello")
        answer = guest.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"hello")


def test_a_refused_expectation_ends_the_connection() -> None:
    with echo_server() as echo, pump(echo.port, port=80, decide=nothing) as joint:
        answer = joint.exchange(
            b"POST / HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\n"
            b"Content-Length: 5\r\n\r\n",
            tls=False,
        )
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"Connection: close" in answer
    assert echo.requests == []


def nothing(_method: str, _path: str) -> Answer:
    return Answer(False, "no rule allows it")


def test_a_refused_request_says_which_rule_would_allow_it(
    private_authority: PrivateAuthority,
) -> None:
    policy = policy_of(allow=["GET api.test"])
    decide = partial(policy.decide_request, "api.test", 8443)
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, decide=decide, port=8443) as joint,
    ):
        client = joint.client(port=8443)
        texts = []
        for _ in range(2):
            client.request("POST", "/v1/x?secret=1", b"body")
            response = client.getresponse()
            assert response.status == 403
            assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
            texts.append(response.read().decode())
        client.request("HEAD", "/v1/y")
        response = client.getresponse()
        assert (response.status, response.read()) == (403, b"")
        client.close()
    assert texts == 2 * [
        "wasmsand: POST api.test:8443/v1/x is not allowed; "
        "to allow it, add 'POST api.test:8443/v1/x' to network.allow\n"
    ]
    assert echo.requests == []
    assert joint.ended.acquire(timeout=1)
    assert not joint.ended.acquire(blocking=False)  # all on one connection
    assert [seen.allowed for seen in joint.seen] == [False, False, False]


def test_a_refused_guest_that_goes_on_sending_can_read_the_refusal() -> None:
    size = 4 * 1024 * 1024
    head = b"POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\n\r\n" % size
    with echo_server() as echo, pump(echo.port, port=80, decide=nothing) as joint:
        answer = joint.exchange(head + b"z" * size, tls=False)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"Connection: close" in answer


def test_a_budget_refuses_a_request() -> None:
    left = iter(["", "the sandbox has used all of its 1 requests"])
    with (
        echo_server() as echo,
        pump(echo.port, port=80, admit=lambda: next(left)) as joint,
    ):
        answer = joint.exchange(2 * b"GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n", tls=False)
    assert b"HTTP/1.1 200 " in answer
    assert answer.endswith(b"wasmsand: the sandbox has used all of its 1 requests\n")
    assert len(echo.requests) == 1


def test_a_guest_of_http_1_0_gets_a_response_that_it_understands() -> None:
    with echo_server() as echo, pump(echo.port, port=80) as joint:
        answer = joint.exchange(b"GET /chunked HTTP/1.0\r\n\r\n", tls=False)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"GET /chunked 0\nsecond\n"
    assert b"transfer-encoding" not in head.lower()
    assert echo.requests[0][2]["host"] == ["api.test"]


def test_a_response_that_ends_with_the_connection_is_complete() -> None:
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it"
    with raw_server(answering(answer)) as port, pump(port, port=80) as joint:
        got = joint.exchange(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", tls=False)
    assert got.endswith(b"\r\n\r\n9\r\nall of it\r\n0\r\n\r\n")
    assert b"Connection: close" in got


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nonly ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nonly \r\nzz\r\n",
    ],
)
def test_a_response_that_is_cut_off_does_not_look_complete(answer: bytes) -> None:
    with (
        raw_server(answering(answer)) as port,
        pump(port, port=80) as joint,
        joint.connect() as guest,
    ):
        guest.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        got = b""
        with pytest.raises(ConnectionResetError):
            while data := guest.recv(65536):
                got += data
    assert not got.endswith(b"0\r\n\r\n")
    assert b"only" in got
    assert joint.seen[0].reason != ""


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 400_000,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20,
    ],
)
def test_a_response_that_is_no_http_is_a_bad_gateway(answer: bytes) -> None:
    with raw_server(answering(answer)) as port, pump(port, port=80) as joint:
        got = joint.exchange(b"GET /x HTTP/1.1\r\nHost: api.test\r\n\r\n", tls=False)
    assert b"HTTP/1.1 502 Bad Gateway\r\n" in got
    assert b"wasmsand: GET /x: the server" in got
    assert joint.seen[-1].status == 502


def test_a_response_before_the_end_of_the_request_is_delivered() -> None:
    early = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n"
    size = 2 * 1024 * 1024
    head = b"POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\n\r\n" % size

    def handle(connection: socket.socket) -> None:
        answering(early)(connection)
        while connection.recv(65536):
            pass

    with raw_server(handle) as port, pump(port, port=80) as joint:
        got = joint.exchange(head + b"z" * size, tls=False)
    assert got.startswith(b"HTTP/1.1 413 Too Large\r\n")
    assert got.endswith(b"\r\n\r\nno\n")


def test_a_server_that_closes_an_idle_connection_closes_the_guests() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with (
        raw_server(answering(answer)) as port,
        pump(port, port=80) as joint,
        joint.connect() as guest,
    ):
        guest.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        got = received(guest)
    assert got.endswith(b"\r\n\r\nok")


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    seen: list[bytes] = []
    handle = answering(answer + answer, answer, seen=seen)
    with raw_server(handle) as port, pump(port, port=80) as joint:
        got = joint.exchange(2 * b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", tls=False)
    assert got.count(b"HTTP/1.1 200 OK") == 1
    assert len(seen) == 1


def test_a_server_that_speaks_first_is_not_http() -> None:
    def handle(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
        connection.recv(100)

    with raw_server(handle) as port, pump(port, port=22) as joint, joint.connect() as guest:
        assert received(guest) == b""
    assert joint.seen[0].reason == "the server spoke first: this is not HTTP"


def test_a_call_does_a_bounded_amount_of_work() -> None:
    """Other connections are served by the same thread."""
    chunks = 20_000
    order = InspectionOrder(
        host="api.test",
        port=80,
        decide=anything,
        authority=Authority(),
        server_context=verifying_context(),
    )
    inspector = Inspector(order)
    inspector.guest_sent(
        b"POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"1\r\nx\r\n" * chunks
        + b"0\r\n\r\n"
    )
    sent = inspector.for_server()
    assert sent.count(b"1\r\nx\r\n") < 200
    calls = 0
    while inspector.has_more:
        inspector.go_on()
        sent += inspector.for_server()
        calls += 1
    assert calls > 50
    assert sent.endswith(b"1\r\nx\r\n" * chunks + b"0\r\n\r\n")


def test_a_head_that_arrives_byte_by_byte_is_searched_once() -> None:
    with echo_server() as echo, pump(echo.port, port=80, piece=1) as joint:
        head = b"GET /a HTTP/1.1\r\nHost: api.test\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"
        assert joint.exchange(head, tls=False).endswith(b"GET /a 0\n")
