"""Hostile tenants and strangers: other clients are answered, and the server ends when told to."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.http.server import Client, ServerProcess, serving
from tests.serving.floods import connect, flood, wait_until_closed
from tests.serving.held_server import MARK, Holding

ALICE, BOB = "alice-has-a-token-of-her-own", "bob-has-another-token-here"
TOKENS = {"WASMSAND_TOKENS": f"alice:{ALICE},bob:{BOB}"}
ENDS_WITHIN = 40
"""Seconds within which a server ends: a grace period of two, and a margin for busy machines."""
HALF_A_HEADER = b"GET /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "


@contextmanager
def hostile(
    *options: str, environ: dict[str, str] | None = None, module: str = "wasmsand"
) -> Iterator[ServerProcess]:
    """A server that must end within seconds of SIGTERM, whatever a test did to it."""
    server = ServerProcess(
        "--grace-seconds", "2", *options, environ={**TOKENS, **(environ or {})}, module=module
    )
    try:
        yield server
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=ENDS_WITHIN)
        assert server.process.returncode in (0, 1)
        assert time.monotonic() - began < ENDS_WITHIN
    finally:
        server.process.kill()
        server.process.communicate()


def raw_request(
    method: str, target: str, token: str, body: bytes = b"", *, accept: str = "*/*"
) -> bytes:
    return (
        f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Accept: {accept}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def work_as_usual(client: Client) -> None:
    """Do everything that a client normally does."""
    sandbox = client.create()
    assert client.ask("PUT", f"{sandbox}/files?path=a", body=b"content").status == 200
    assert client.ask("GET", f"{sandbox}/files?path=a").body == b"content"
    assert client.ask("GET", f"{sandbox}/files/list").status == 200
    assert client.ask("GET", f"{sandbox}/usage").status == 200
    assert client.run(sandbox, "cat a").json["stdout"] == "content"
    started = client.ask("POST", f"{sandbox}/commands", {"command": "echo hi"})
    identity = started.json["id"]
    ended = client.ask("GET", f"{sandbox}/commands/{identity}?wait_ms=20000").json
    assert ended["end"]["exit_code"] == 0
    assert client.ask("DELETE", sandbox).status == 200


def test_a_sandbox_that_holds_its_lock_hurts_nobody_else(tmp_path: Path) -> None:
    holding = Holding(tmp_path)
    with (
        hostile(
            "--isolation", "none", environ=holding.environ, module="tests.serving.held_server"
        ) as server,
        ExitStack() as held,
    ):
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        bad, other = alice.create(max_inodes=MARK), alice.create()
        expiring = alice.create(max_inodes=MARK, idle_seconds=1)
        # Commands that run when the lock is taken, with and without a stream.
        for accept in ("application/json", "text/event-stream"):
            for _ in range(3):
                connection = held.enter_context(connect(server.url))
                body = json.dumps({"command": "touch begun; sleep 1000"}).encode()
                connection.sendall(raw_request("POST", f"{bad}/run", ALICE, body, accept=accept))
        while alice.ask("GET", f"{bad}/files/stat?path=begun").status != 200:
            time.sleep(0.05)
        holding.begin()
        # More requests of every kind than threads; every second client disconnects.
        run = json.dumps({"command": "true"}).encode()
        kinds = [
            ("GET", "/files?path=/etc/passwd", b""),
            ("GET", "/files/list?path=/", b""),
            ("GET", "/files/tar?path=/home", b""),
            ("PUT", "/files?path=x", b"content"),
            ("GET", "/usage", b""),
            ("GET", "/processes", b""),
            ("POST", "/run", run),
            ("POST", "/commands", run),
            ("GET", "/commands", b""),
        ]
        for number in range(20 * len(kinds)):
            method, target, body = kinds[number % len(kinds)]
            accept = "text/event-stream" if number % 4 else "*/*"
            connection = held.enter_context(connect(server.url))
            connection.sendall(raw_request(method, bad + target, ALICE, body, accept=accept))
            if number // len(kinds) % 2:
                connection.close()
        for _ in range(3):
            work_as_usual(bob)
        # The tenant's other sandbox works, too.
        assert alice.ask("GET", f"{other}/files?path=/etc/passwd").status == 200
        assert alice.run(other, "echo well").json["stdout"] == "well\n"
        # Only this tenant is refused.
        with ThreadPoolExecutor(40) as pool:
            target = f"{bad}/files/stat?path=/"
            answers = [pool.submit(alice.ask, "GET", target) for _ in range(40)]
            assert alice.ask("DELETE", bad).json == {"killed": True}
            for answer in answers:
                answer.result()
        identities = [item["id"] for item in alice.ask("GET", "/v1/sandboxes").json["sandboxes"]]
        assert bad.rpartition("/")[2] not in identities
        assert expiring.rpartition("/")[2] not in identities
        work_as_usual(bob)
        # Still busy when the server is told to end:
        again = alice.create(max_inodes=MARK)
        time.sleep(0.5)
        for _ in range(20):
            connection = held.enter_context(connect(server.url))
            connection.sendall(raw_request("GET", f"{again}/usage", ALICE))


def test_a_process_of_a_sandbox_that_hangs_hurts_nobody_else() -> None:
    with hostile("--spare-processes", "1") as server, ExitStack() as held:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        while not (spares := children(server.process.pid)):
            time.sleep(0.05)
        time.sleep(2)  # until it is ready: the next sandbox takes it
        bad = alice.create()
        assert alice.run(bad, "echo well").json["stdout"] == "well\n"
        for pid in spares:
            os.kill(pid, signal.SIGSTOP)
        for number in range(60):
            connection = held.enter_context(connect(server.url))
            target = ("/usage", "/files?path=/etc/passwd", "/processes")[number % 3]
            connection.sendall(raw_request("GET", bad + target, ALICE))
        work_as_usual(bob)
        assert alice.ask("DELETE", bad).status == 200
        work_as_usual(alice)


def children(pid: int) -> set[int]:
    """The child processes of a process."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").iterdir():
        found |= {int(word) for word in (path / "children").read_text().split()}
    return found


def test_headers_that_never_end_keep_nobody_out() -> None:
    with hostile() as server, flood(server.url, 1200, HALF_A_HEADER) as connections:
        bob = Client(server.url, BOB)
        for _ in range(5):
            assert bob.ask("GET", "/v1/sandboxes").status == 200
            assert Client(server.url).ask("GET", "/healthz").status == 200
        # They keep sending single bytes, and are closed in time.
        for connection in connections:
            try:
                connection.sendall(b"x")
            except OSError:
                pass
        wait_until_closed(connections, 60)
        assert bob.ask("GET", "/v1/sandboxes").status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"GET",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nx",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_clients_without_a_token_are_cut_off_soon(server: ServerProcess, data: bytes) -> None:
    with flood(server.url, 20, data) as connections:
        wait_until_closed(connections, 60)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving("--header-seconds", "2", environ=TOKENS) as server:
        yield server


def test_a_server_ends_with_connections_of_every_kind() -> None:
    with hostile("--isolation", "none") as server, ExitStack() as held:
        bob = Client(server.url, BOB)
        sandbox = bob.create()
        held.enter_context(flood(server.url, 50, HALF_A_HEADER))
        held.enter_context(flood(server.url, 50, raw_request("GET", "/v1/sandboxes", BOB)))
        put = raw_request("PUT", f"{sandbox}/files?path=x", BOB, b"x" * 100)
        held.enter_context(flood(server.url, 50, put[:-50]))
        for _ in range(5):  # streams that nobody reads
            connection = held.enter_context(connect(server.url))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = json.dumps({"command": "yes"}).encode()
            connection.sendall(
                raw_request("POST", f"{sandbox}/run", BOB, body, accept="text/event-stream")
            )
        time.sleep(1)


def test_a_second_signal_ends_a_server_at_once() -> None:
    server = ServerProcess("--grace-seconds", "1000")
    try:
        client = Client(server.url)
        sandbox = client.create()
        with connect(server.url) as connection:
            body = json.dumps({"command": "touch begun; sleep 1000"}).encode()
            connection.sendall(raw_request("POST", f"{sandbox}/run", "", body))
            while client.ask("GET", f"{sandbox}/files/stat?path=begun").status != 200:
                time.sleep(0.05)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(1)
            assert server.process.poll() is None
            server.process.send_signal(signal.SIGTERM)
            server.process.communicate(timeout=ENDS_WITHIN)
            assert server.process.returncode == 128 + signal.SIGTERM
    finally:
        server.process.kill()
        server.process.communicate()


def test_one_tenant_cannot_take_all_connections() -> None:
    with hostile("--max-connections", "40") as server, ExitStack() as held:
        opened = held.enter_context(flood(server.url, 60, raw_request("GET", "/metrics", ALICE)))
        assert len(opened) == 60
        for _ in range(5):
            assert Client(server.url, BOB).ask("GET", "/v1/sandboxes").status == 200


def test_one_tenant_cannot_take_all_room_for_bodies() -> None:
    with (
        hostile("--max-buffered-bytes", "4000000", "--isolation", "none") as server,
        ExitStack() as held,
    ):
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        hers, his = alice.create(), bob.create()
        half = raw_request("PUT", f"{hers}/files?path=x", ALICE, b"x" * 1_000_000)[:-1]
        held.enter_context(flood(server.url, 8, half))
        time.sleep(0.5)
        body = b"y" * 500_000
        assert bob.ask("PUT", f"{his}/files?path=y", body=body).status == 200
        assert alice.ask("PUT", f"{hers}/files?path=y", body=body).status in (200, 503)
