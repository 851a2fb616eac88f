"""Clients that take too much: time, connections, memory, threads."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.http.server import Client, serving
from wasmsand.http.serve import running_server
from wasmsand.http.settings import Settings

SHORT = Settings(
    port=0,
    header_seconds=1,
    body_seconds=1,
    unread_seconds=1,
    keep_alive_seconds=2,
    max_connections=3,
)


@contextmanager
def server_in_this_process(settings: Settings) -> Iterator[Client]:
    """A server with settings that the command line does not offer."""
    with running_server(settings) as url:
        yield Client(url)


def raw_connection(client: Client) -> socket.socket:
    """A connection to the server."""
    parts = urlsplit(client.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def seconds_until_closed(connection: socket.socket) -> tuple[float, bytes]:
    """How long the server kept the connection open, and what it sent."""
    began, received = time.monotonic(), b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return time.monotonic() - began, received


def test_a_client_that_says_nothing_is_cut_off() -> None:
    with server_in_this_process(SHORT) as client, raw_connection(client) as connection:
        seconds, received = seconds_until_closed(connection)
        assert (0.5 < seconds < 60, received) == (True, b"")


def test_a_header_that_never_ends_is_cut_off() -> None:
    with server_in_this_process(SHORT) as client, raw_connection(client) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            for number in range(100):
                connection.sendall(b"X-%d: x\r\n" % number)
                time.sleep(0.05)


def test_a_header_that_is_too_long_is_refused() -> None:
    with server_in_this_process(SHORT) as client, raw_connection(client) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000)
        _, received = seconds_until_closed(connection)
        assert received == b"" or b'"code":"bad_request"' in received


def test_a_request_that_is_not_http_gets_a_json_error() -> None:
    with server_in_this_process(SHORT) as client, raw_connection(client) as connection:
        connection.sendall(b"hello\r\n\r\n")
        _, received = seconds_until_closed(connection)
        assert received.startswith(b"HTTP/1.1 400 ")
        assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


def test_a_body_that_takes_too_long_is_refused() -> None:
    with server_in_this_process(SHORT) as client, raw_connection(client) as connection:
        connection.sendall(
            b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            b"Content-Type: application/json\r\n\r\n"
        )
        seconds, received = seconds_until_closed(connection)
        assert received.startswith(b"HTTP/1.1 408 ")
        assert 0.5 < seconds < 60


def test_an_idle_connection_is_closed() -> None:
    with server_in_this_process(SHORT) as client, raw_connection(client) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        seconds, received = seconds_until_closed(connection)
        assert received.startswith(b"HTTP/1.1 200 ")
        assert 1 < seconds < 60


def test_a_client_that_does_not_read_is_cut_off() -> None:
    with server_in_this_process(SHORT) as client:
        sandbox = client.create()
        with raw_connection(client) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = b'{"command": "yes"}'
            connection.sendall(
                b"POST %s/run HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (sandbox.encode(), len(body), body)
            )
            # The command waits for its reader, and ends when the reader is cut off.
            while not client.ask("GET", f"{sandbox}/processes").json["processes"]:
                time.sleep(0.05)
            began = time.monotonic()
            while client.ask("GET", f"{sandbox}/processes").json["processes"]:
                assert time.monotonic() - began < 60
                time.sleep(0.05)


HALF_A_REQUEST = (
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    b"Content-Type: application/json\r\n\r\n{"
)


def test_connections_are_bounded() -> None:
    """Busy connections are not cut off for others."""
    with server_in_this_process(replace(SHORT, body_seconds=30, body_idle_seconds=30)) as client:
        kept = [raw_connection(client) for _ in range(3)]
        for connection in kept:
            connection.sendall(HALF_A_REQUEST)
            time.sleep(0.2)
        answer = client.ask("GET", "/healthz")
        assert answer.error[:2] == (503, "server_full")
        for connection in kept:
            connection.close()
        time.sleep(0.2)
        assert client.ask("GET", "/healthz").status == 200


def test_connections_that_say_nothing_make_room_for_others() -> None:
    with server_in_this_process(replace(SHORT, header_seconds=30)) as client:
        kept = [raw_connection(client) for _ in range(3)]
        time.sleep(0.2)
        assert client.ask("GET", "/healthz").status == 200
        seconds, received = seconds_until_closed(kept[0])
        assert (seconds < 20, received) == (True, b"")
        for connection in kept:
            connection.close()


def test_more_commands_than_can_wait_are_refused() -> None:
    with serving("--max-running-commands", "2", "--max-waiting-commands", "2") as server:
        client = Client(server.url)
        sandbox = client.create()
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: client.run(sandbox, "sleep 2"), range(12)))
        assert {answer.status for answer in answers} == {200, 503}
        assert sum(answer.status == 200 for answer in answers) >= 4
        refused = next(answer for answer in answers if answer.status == 503)
        assert refused.error == (
            503,
            "busy",
            "the server is overloaded (max_running_commands); try again later",
        )
        assert refused.headers["retry-after"] == "1"
        # Files can be read meanwhile, and commands run afterwards.
        assert client.run(sandbox, "echo again").json["stdout"] == "again\n"


def test_long_commands_do_not_hold_up_other_requests() -> None:
    with serving("--max-running-commands", "2") as server:
        client = Client(server.url)
        sandbox = client.create()
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(client.run, sandbox, "sleep 5") for _ in range(4)]
            while len(client.ask("GET", f"{sandbox}/processes").json["processes"]) < 2:
                time.sleep(0.05)
            assert client.ask("GET", f"{sandbox}/files?path=/etc/passwd").status == 200
            assert client.ask("GET", "/healthz").status == 200
            assert not any(command.done() for command in running)
            for command in running:
                assert command.result().status == 200


def test_bodies_that_are_held_are_bounded_together() -> None:
    with server_in_this_process(replace(SHORT, max_buffered_bytes=1000)) as client:
        sandbox = client.create()
        answer = client.ask("PUT", f"{sandbox}/files?path=a", body=b"x" * 5000)
        assert answer.error[:2] == (503, "busy")
        assert client.ask("PUT", f"{sandbox}/files?path=a", body=b"x" * 500).status == 200


def test_a_timeout_of_the_client_is_cut_to_the_servers_longest() -> None:
    with serving("--max-command-seconds", "0.5") as server:
        client = Client(server.url)
        sandbox = client.create(timeout_ms=None)
        assert client.run(sandbox, "sleep 60").json["timed_out"] is True
        assert client.run(sandbox, "sleep 60", timeout_ms=100_000).json["timed_out"] is True


def test_started_commands_of_a_sandbox_are_bounded(client: Client, sandbox: str) -> None:
    for _ in range(70):  # ended commands make room
        answer = client.ask("POST", f"{sandbox}/commands", {"command": ["true"]})
        assert answer.status == 201
        client.ask("GET", f"{sandbox}/commands/{answer.json['id']}?wait_ms=20000")
    assert len(client.ask("GET", f"{sandbox}/commands").json["commands"]) == 64
