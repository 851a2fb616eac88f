"""Terminals over a WebSocket: the protocol, seen by a client of somebody else; and hostile ones."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as connect_websocket
from websockets.sync.connection import Connection
from websockets.typing import Subprotocol

from tests.http.server import Client, ServerProcess, serving
from tests.waiting import wait_until

ALICE, BOB = "alice-has-a-token-of-her-own", "bob-has-another-token-here"
PATIENCE = 60.0


@pytest.fixture(scope="module", params=["none", "process"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    workers = "2" if request.param == "process" else "1"
    tokens = {"WASMSAND_TOKENS": f"alice:{ALICE},bob:{BOB}"}
    options = ("--isolation", request.param, "--grace-seconds", "2", "--max-terminals", "16")
    with serving("--workers", workers, *options, environ=tokens) as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Client:
    return Client(server.url, ALICE)


class Seen:
    """A terminal, as a client sees it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.shown = b""

    def tell(self, **order: object) -> None:
        self.connection.send(json.dumps(order))

    def expect(self, wanted: bytes) -> None:
        """Wait for output."""
        while wanted not in self.shown:
            message = self.connection.recv(PATIENCE)
            assert isinstance(message, bytes), message
            self.shown += message
        self.shown = self.shown.partition(wanted)[2]

    def report(self, kind: str) -> dict[str, Any]:
        """Wait for a text message; output before it is kept."""
        while True:
            message = self.connection.recv(PATIENCE)
            if isinstance(message, bytes):
                self.shown += message
            elif (found := json.loads(message))["type"] == kind:
                assert isinstance(found, dict)
                return found


def address(client: Client, sandbox: str) -> str:
    return client.url.replace("http:", "ws:") + sandbox + "/terminal"


@contextmanager
def terminal(
    client: Client,
    sandbox: str,
    *,
    headers: Mapping[str, str] | None = None,
    subprotocols: list[str] | None = None,
    close_seconds: float = 10,
    **order: object,
) -> Iterator[Seen]:
    """A terminal, from the handshake to the end of the connection. `close_seconds` is how long the
    client waits for the server's answer when it closes."""
    if headers is None:
        headers = {} if client.token is None else {"Authorization": f"Bearer {client.token}"}
    with connect_websocket(
        address(client, sandbox),
        additional_headers=headers,
        subprotocols=[Subprotocol(word) for word in subprotocols or []],
        ping_interval=None,
        close_timeout=close_seconds,
        max_size=None,
    ) as connection:
        seen = Seen(connection)
        if order:
            seen.tell(type="open", **order)
            assert seen.report("opened")["pid"] > 1
        yield seen


def processes(client: Client, sandbox: str) -> list[str]:
    found = client.ask("GET", f"{sandbox}/processes").json["processes"]
    return [" ".join(process["argv"]) for process in found]


def test_keys_output_size_and_exit(client: Client) -> None:
    sandbox = client.create()
    script = 'read x; echo "got $x"; stty size; echo "$A $TERM"; pwd; exit 3'
    with terminal(
        client, sandbox, command=script, cols=100, rows=30, env={"A": "1"}, cwd="/tmp"
    ) as t:
        t.tell(type="resize", cols=120, rows=40)
        t.connection.send(b"word\r")
        t.expect(b"got word\r\n40 120\r\n1 xterm-256color\r\n/tmp\r\n")
        assert t.report("exit") == {"type": "exit", "exit_code": 3}
        with pytest.raises(ConnectionClosed) as closed:
            t.connection.recv(PATIENCE)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000


def test_without_a_command_it_is_an_interactive_shell(client: Client) -> None:
    with terminal(client, client.create(), command=None) as t:
        t.expect(b"$ ")
        t.connection.send(b"bash -c 'echo runs; exec sleep 100'\r")
        t.expect(b"\rruns\r\n")
        t.connection.send(b"\x03")
        t.connection.send(b"echo status $?\r")
        t.expect(b"\rstatus 130\r\n")
        t.connection.send(b"\x04")
        assert t.report("exit")["exit_code"] == 0


def test_a_web_page_gives_its_token_as_a_subprotocol(client: Client) -> None:
    sandbox = client.create()
    encoded = base64.urlsafe_b64encode(ALICE.encode()).decode().rstrip("=")
    offered = ["wasmsand.terminal.v1", f"wasmsand.bearer.{encoded}"]
    with terminal(client, sandbox, headers={}, subprotocols=offered, command="echo hi") as t:
        assert t.connection.subprotocol == "wasmsand.terminal.v1"
        t.expect(b"hi\r\n")


def test_only_the_owner_gets_a_terminal(client: Client) -> None:
    sandbox = client.create()
    wrong = ["wasmsand.terminal.v1", "wasmsand.bearer.bm90LWEtdG9rZW4", "wasmsand.bearer.%"]
    for headers, subprotocols, status in (
        ({}, [], 401),
        ({"Authorization": "Bearer wrong"}, [], 401),
        ({}, wrong[:2], 401),
        ({"Authorization": f"Bearer {BOB}"}, [], 404),
    ):
        with (
            pytest.raises(InvalidStatus) as refused,
            terminal(client, sandbox, headers=headers, subprotocols=subprotocols),
        ):
            pass
        assert refused.value.response.status_code == status


def test_web_pages_get_no_terminal_of_a_server_without_tokens() -> None:
    with serving("--grace-seconds", "2") as server:
        client = Client(server.url)
        sandbox = client.create()
        origin = {"Origin": "http://evil.example"}
        with (
            pytest.raises(InvalidStatus) as refused,
            terminal(client, sandbox, headers=origin),
        ):
            pass
        assert refused.value.response.status_code == 403
        with terminal(client, sandbox, command="echo mine") as t:
            t.expect(b"mine\r\n")


def test_a_plain_request_is_told_to_upgrade(client: Client) -> None:
    sandbox = client.create()
    status, code, _ = client.ask("GET", f"{sandbox}/terminal").error
    assert (status, code) == (426, "upgrade_required")
    weak = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    for key in ("", "short", "not base64!", "QUJD"):
        answer = client.ask(
            "GET", f"{sandbox}/terminal", headers={**weak, "Sec-WebSocket-Key": key}
        )
        assert answer.status == 426


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b"bytes", "invalid_value"),
        ("no json", "bad_json"),
        ("[]", "invalid_value"),
        ('{"type":"open","cols":0}', "invalid_value"),
        ('{"type":"open","rows":65536}', "invalid_value"),
        ('{"type":"open","unknown":1}', "invalid_value"),
        ('{"type":"\\ud800"}', "invalid_value"),
        ('{"type":"open","window":0}', "invalid_value"),
        ('{"type":"open","command":[]}', "invalid_value"),
        ('{"type":"open","env":{},"environ":{}}', "invalid_value"),
        ('{"type":"open","command":["nothing"]}', "command_error"),
        ('{"type":"open","cwd":"/nowhere"}', "command_error"),
        ('{"type":"resize","cols":1,"rows":1}', "invalid_value"),
    ],
)
def test_mistakes_are_named(client: Client, first: str | bytes, code: str) -> None:
    sandbox = client.create()
    with terminal(client, sandbox) as t:
        t.connection.send(first)
        assert t.report("error")["error"]["code"] == code
        with pytest.raises(ConnectionClosed):
            t.connection.recv(PATIENCE)
    assert processes(client, sandbox) == []


@pytest.mark.parametrize(
    "later", ['{"type":"open"}', "x", '{"type":"ack","bytes":0}', '{"type":"resize","cols":1}']
)
def test_a_bad_message_ends_the_terminal(client: Client, later: str) -> None:
    sandbox = client.create()
    with terminal(client, sandbox, command=["sleep", "100"]) as t:
        t.connection.send(later)
        assert t.report("error")["error"]["code"] in ("invalid_value", "bad_json")
    wait_until(lambda: processes(client, sandbox) == [])


def test_a_client_that_vanishes_hangs_up(client: Client) -> None:
    sandbox = client.create()
    client.ask(
        "PUT", f"{sandbox}/files?path=trap.sh", body=b"trap 'echo hung up > note' HUP\ncat\n"
    )
    with terminal(client, sandbox, command="bash trap.sh; true") as t:
        wait_until(lambda: "cat" in processes(client, sandbox))
        t.connection.socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: processes(client, sandbox) == [])


def test_hang_up_and_kill_are_orders(client: Client) -> None:
    sandbox = client.create()
    with terminal(client, sandbox, command=["sleep", "100"]) as t:
        t.tell(type="hangup")
        assert t.report("exit")["exit_code"] == 129
    with terminal(client, sandbox, command="trap '' HUP; sleep 100 & sleep 100; exit 0") as t:
        wait_until(lambda: len(processes(client, sandbox)) == 3)
        t.tell(type="kill")
        assert t.report("exit")["exit_code"] == 137
    wait_until(lambda: processes(client, sandbox) == [])


def test_output_waits_for_the_window(client: Client) -> None:
    sandbox = client.create()
    script = "seq 100000 | tr -d '\\n' & echo $! > pid; wait"
    with terminal(client, sandbox, command=script, window=1000) as t:
        received = 0
        total = len("".join(map(str, range(1, 100001))))
        while received < total:
            step = 0
            while step < min(1000, total - received):
                step += len(t.connection.recv(PATIENCE))
            assert step <= 1000
            received += step
            if received < 5000:
                with pytest.raises(TimeoutError):
                    t.connection.recv(0.2)
            if received < total:  # after the end, the server closes the connection
                t.tell(type="ack", bytes=10**9)  # more than there was: the window is the most
        assert received == total
        assert t.report("exit")["exit_code"] == 0


@contextmanager
def raw_terminal(client: Client, sandbox: str) -> Iterator[socket.socket]:
    """A terminal with a program that does not read, without a library between."""
    parts = urlsplit(client.url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 80), PATIENCE) as connection:
        connection.sendall(
            f"GET {sandbox}/terminal HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ALICE}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n".encode()
        )
        order = b'{"type":"open","command":["sleep","1000"]}'
        connection.sendall(b"\x81" + bytes([0x80 | len(order)]) + bytes(4) + order)
        received = b""
        while b'"opened"' not in received:
            received += connection.recv(65536)
        assert received.startswith(b"HTTP/1.1 101 ")
        yield connection


def memory_of(server: ServerProcess) -> int:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found
    return int(found[1]) * 1024


def test_a_client_that_does_not_read_stops_the_program_and_holds_no_memory(
    server: ServerProcess, client: Client
) -> None:
    sandbox = client.create()
    before = memory_of(server)
    endless = "while :; do echo $((++i)) > n; seq 2000; done"
    # The server's answer is behind the output that nobody reads.
    with terminal(client, sandbox, close_seconds=0.5, command=endless):
        # The client's library stops to read when a few messages wait.
        counts = ["", "-"]
        while counts[-1] != counts[-2] or not counts[-1]:
            time.sleep(1.0)
            counts.append(client.ask("GET", f"{sandbox}/files?path=n").body.decode().strip())
            assert len(counts) < 60
        assert memory_of(server) - before < 64 * 1024 * 1024
        with terminal(client, sandbox, command="echo others work") as other:
            other.expect(b"others work\r\n")


def test_a_flood_of_keys_for_a_program_that_does_not_read(
    server: ServerProcess, client: Client
) -> None:
    sandbox = client.create()
    before = memory_of(server)
    with raw_terminal(client, sandbox) as connection:
        connection.settimeout(2.0)
        sent = 0
        flood = b"line\n" * 10_000
        frame = b"\x82\xfe" + len(flood).to_bytes(2) + bytes(4) + flood  # a mask of zeros
        with pytest.raises(TimeoutError):
            while sent < 500_000_000:
                connection.sendall(frame)
                sent += len(flood)
        assert memory_of(server) - before < 64 * 1024 * 1024
    wait_until(lambda: processes(client, sandbox) == [])


def test_a_thousand_resizes_per_second(client: Client) -> None:
    with terminal(client, client.create(), command="read x; stty size") as t:
        for number in range(2000):
            t.tell(type="resize", cols=1 + number % 65535, rows=1 + number % 60000)
        t.connection.send(b"\r")
        t.expect(b"2000 2000\r\n")


@pytest.mark.parametrize(
    "frame",
    [
        b"\x82\x05hello",  # not masked
        b"\xf2\x85\0\0\0\0hello",  # reserved bits
        b"\x83\x85\0\0\0\0hello",  # an unknown kind
        b"\x80\x85\0\0\0\0hello",  # continues nothing
        b"\x09\x80\0\0\0\0",  # a ping in parts
        b"\x89\xfe\x01\x00\0\0\0\0",  # a long ping
        b"\x82\xff" + (1 << 62).to_bytes(8) + b"\0\0\0\0",  # larger than anything
        b"\x81\x82\0\0\0\0\xff\xfe",  # not UTF-8
    ],
)
def test_broken_frames_end_the_terminal(client: Client, frame: bytes) -> None:
    sandbox = client.create()
    with raw_terminal(client, sandbox) as connection:
        connection.sendall(frame)
        received = b""
        while data := connection.recv(65536):
            received += data
    assert b'"type":"error"' in received
    wait_until(lambda: processes(client, sandbox) == [])


def test_a_client_that_never_asks_for_anything_is_dropped_with_its_sandbox(client: Client) -> None:
    sandbox = client.create()
    with terminal(client, sandbox) as t:
        assert client.ask("DELETE", sandbox).status == 200
        t.tell(type="open", command="echo hi")
        assert t.report("error")["error"]["code"] == "sandbox_closed"


def test_a_killed_sandbox_ends_its_terminals(client: Client) -> None:
    sandbox = client.create()
    with terminal(client, sandbox, command=["sleep", "100"]) as t:
        assert client.ask("DELETE", sandbox).status == 200
        assert t.report("error")["error"]["code"] == "sandbox_closed"


def test_the_number_of_terminals_is_bounded_and_places_come_back(client: Client) -> None:
    sandbox = client.create()
    opened = []
    with pytest.raises(InvalidStatus) as refused:
        for _ in range(20):
            one = terminal(client, sandbox, command=["sleep", "100"])
            one.__enter__()
            opened.append(one)
    assert refused.value.response.status_code in (429, 503)
    assert 2 <= len(opened) <= 16
    bob = Client(client.url, BOB)
    with terminal(bob, bob.create(), command="echo bob has his share") as t:
        t.expect(b"bob has his share\r\n")
    for one in opened:
        one.__exit__(None, None, None)
    wait_until(lambda: processes(client, sandbox) == [])
    with terminal(client, sandbox, command="echo again") as t:
        t.expect(b"again\r\n")
    metrics = client.ask("GET", "/metrics").body.decode()
    assert re.search(r"^wasmsand_terminals\S* [01](\.0)?$", metrics, re.MULTILINE), metrics


def test_the_server_ends_while_terminals_are_open() -> None:
    server = ServerProcess("--grace-seconds", "2")
    client = Client(server.url)
    with terminal(client, client.create(), command=["sleep", "1000"]):
        began = time.monotonic()
        assert server.terminate() == (0, "")
        assert time.monotonic() - began < 30
