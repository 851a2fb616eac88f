"""Requests of guests in a page: what the host is asked to do, and what the guest gets."""

from __future__ import annotations

import json

from wasmsand.machine.network.inspecting.order import RequestOrder, RequestSeen
from wasmsand.machine.network.inspecting.transports import Plain
from wasmsand.machine.network.policy import NetworkPolicy, policy_of
from wasmsand.web.network.bridge import Receiver
from wasmsand.web.network.conversation import PageConversation

GET = b"GET /a?b HTTP/1.1\r\nHost: web.test\r\nAccept: */*\r\n\r\n"


class Guest:
    """A guest that is connected to web.test:80, and a host that does what the test says."""

    def __init__(self, policy: NetworkPolicy | None = None, *, room: int = 1000) -> None:
        policy = policy or policy_of(allow=["web.test"])
        self.transport = Plain()
        self.seen: list[RequestSeen] = []
        self.started: list[tuple[str, str, dict[str, str], bytes]] = []
        self.stopped: list[int] = []
        self.asked = 0
        self._receivers: list[Receiver] = []
        self._room = room
        order = RequestOrder(
            host="web.test",
            port=80,
            decide=lambda method, path: policy.decide_request("web.test", 80, method, path),
            on_request=self.seen.append,
        )
        self.conversation = PageConversation(order, self.transport, self, secure=False)

    def send(self, data: bytes) -> bytes:
        """What the guest gets when it has sent `data`."""
        self.transport.receive(data)
        self.conversation.advance()
        return self.transport.take()

    def host_says(self, event: str, text: str = "", data: bytes = b"") -> bytes:
        self._receivers[-1].hear(event, text, data)
        self.conversation.advance()
        return self.transport.take()

    # Requests.

    def start(self, receiver: Receiver, method: str, url: str, headers: str, body: bytes) -> int:
        self.started.append((method, url, dict(json.loads(headers)), body))
        self._receivers.append(receiver)
        return len(self._receivers)

    def more(self, number: int) -> None:
        self.asked += 1

    def stop(self, number: int) -> None:
        self.stopped.append(number)

    def came(self, count: int) -> None:
        pass

    def keep_body(self, size: int) -> bool:
        self._room -= size
        return self._room >= 0

    def drop_body(self, size: int) -> None:
        self._room += size

    def may_use(self, address: str) -> bool:
        return True


def head(status: int = 200, *headers: tuple[str, str]) -> str:
    return json.dumps({"status": status, "reason": "OK", "headers": headers})


def test_a_request_is_made_again_by_the_host_and_its_answer_framed_anew() -> None:
    guest = Guest()
    assert guest.send(GET) == b""
    url = "http://web.test:80/a?b"
    assert guest.started == [("GET", url, {"Host": "web.test", "Accept": "*/*"}, b"")]
    assert guest.host_says("head", head(200, ("X-A", "1"), ("Transfer-Encoding", "gzip"))) == (
        b"HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert guest.asked == 1
    assert guest.host_says("data", data=b"text") == b"4\r\ntext\r\n"
    assert guest.asked == 2
    assert guest.host_says("end") == b"0\r\n\r\n"
    assert guest.stopped == [1]
    assert [(seen.allowed, seen.path, seen.received) for seen in guest.seen] == [(True, "/a", 4)]
    guest.send(GET)  # the connection stays usable
    assert len(guest.started) == 2


def test_a_request_that_no_rule_allows_is_not_made() -> None:
    guest = Guest(policy_of(allow=["GET web.test/open/*"]))
    assert guest.send(GET).startswith(b"HTTP/1.1 403 ")
    assert guest.send(GET.replace(b"/a?b", b"/open/%2e%2e/a")).startswith(b"HTTP/1.1 403 ")
    assert guest.send(GET.replace(b"/a?b", b"//evil.test/")).startswith(b"HTTP/1.1 403 ")
    assert guest.started == []


def test_the_host_of_a_url_is_always_the_one_of_the_connection() -> None:
    for target in (b"//evil.test/a", b"/\\evil.test/a", b"/@evil.test/", b"/a?u=http://evil.test"):
        guest = Guest()
        guest.send(GET.replace(b"/a?b", target))
        assert [url for _, url, _, _ in guest.started] == [f"http://web.test:80{target.decode()}"]
    guest = Guest()
    other = guest.send(GET.replace(b"/a?b", b"http://evil.test/"))
    assert other.startswith(b"HTTP/1.1 421 ")
    assert guest.started == []


def test_a_body_is_collected_within_the_room_of_the_sandbox() -> None:
    guest = Guest(room=1000)
    upload = b"PUT /a HTTP/1.1\r\nHost: web.test\r\nContent-Length: %d\r\n\r\n"
    guest.send(upload % 1000)
    guest.send(bytes(600))
    assert guest.started == []
    guest.send(bytes(400))
    assert guest.started[0][3] == bytes(1000)
    guest = Guest(room=1000)
    guest.send(upload % 1001)
    assert guest.send(bytes(1001)).startswith(b"HTTP/1.1 413 ")
    assert guest.started == []


def test_an_answer_that_is_cut_off_is_not_completed() -> None:
    guest = Guest()
    guest.send(GET)
    guest.host_says("head", head(200, ("Content-Length", "10")))
    guest.host_says("data", data=b"begin")
    assert guest.host_says("fail", "the host went away") == b""
    assert guest.conversation.was_cut_off
    assert guest.conversation.problem == "the host went away"


def test_an_answer_longer_or_shorter_than_it_says_is_cut_off() -> None:
    for data in (b"12345678901", b"123"):
        guest = Guest()
        guest.send(GET)
        guest.host_says("head", head(200, ("Content-Length", "10")))
        guest.host_says("data", data=data)
        guest.host_says("end")
        assert guest.conversation.was_cut_off


def test_a_host_that_cannot_be_reached_is_a_502_with_the_reason() -> None:
    guest = Guest()
    guest.send(GET)
    answer = guest.host_says("fail", "the server redirects")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert answer.endswith(b"wasmsand: GET /a: the server redirects\n")


def test_malformed_heads_of_the_host_are_a_502() -> None:
    for bad in (head(200, ("bad name", "x")), head(200, ("a", "b\r\nc: d")), head(99), head(101)):
        guest = Guest()
        guest.send(GET)
        assert guest.host_says("head", bad).startswith(b"HTTP/1.1 502 ")


def test_a_request_to_switch_protocols_is_refused() -> None:
    guest = Guest()
    upgrade = (
        b"GET /a HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert guest.send(upgrade).startswith(b"HTTP/1.1 501 ")
    assert guest.started == []


def test_giving_up_stops_the_request_of_the_host() -> None:
    guest = Guest()
    guest.send(GET)
    guest.conversation.abandon("the guest has closed it")
    assert guest.stopped == [1]
    assert guest.seen[0].reason == "the guest has closed it"
