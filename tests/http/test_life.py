"""Sandboxes that expire, servers that end."""

from __future__ import annotations

import http.client
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.http.server import Client, DidNotStart, ServerProcess, serving

GRACEFUL = ("--grace-seconds", "2")


def wait_until_gone(client: Client, sandbox: str, seconds: float) -> float:
    """Wait until the list no longer shows the sandbox; returns how long that took."""
    began = time.monotonic()
    identity = sandbox.rpartition("/")[2]
    while time.monotonic() - began < seconds:
        listed = client.ask("GET", "/v1/sandboxes").json["sandboxes"]
        if identity not in [item["id"] for item in listed]:
            return time.monotonic() - began
        time.sleep(0.1)
    pytest.fail(f"{sandbox} still exists after {seconds} seconds")


def test_a_sandbox_that_nobody_uses_expires(client: Client) -> None:
    sandbox = client.create(idle_seconds=1)
    assert wait_until_gone(client, sandbox, 60) > 0.9
    status, code, message = client.run(sandbox, "true").error
    assert (status, code) == (404, "sandbox_not_found")
    assert "it expired" in message


def test_use_keeps_a_sandbox_alive(client: Client) -> None:
    sandbox = client.create(idle_seconds=3)
    assert client.run(sandbox, "sleep 4; echo there").json["stdout"] == "there\n"
    for _ in range(5):
        time.sleep(1)
        assert client.ask("GET", f"{sandbox}/env").status == 200
    wait_until_gone(client, sandbox, 60)


def test_a_sandbox_that_is_used_ends_at_its_age(client: Client) -> None:
    sandbox = client.create(lifetime_seconds=1)
    answer = client.run(sandbox, "sleep 60")
    assert answer.error[:2] == (410, "sandbox_closed")


def test_the_server_limits_how_long_a_sandbox_lives() -> None:
    with serving("--idle-seconds", "1", "--lifetime-seconds", "100") as server:
        client = Client(server.url)
        sandbox = client.create(idle_seconds=1000, lifetime_seconds=1000)
        wait_until_gone(client, sandbox, 60)


def test_a_client_that_goes_away_takes_its_command_with_it(client: Client, sandbox: str) -> None:
    for accept in ("application/json", "text/event-stream"):
        parts = urlsplit(client.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request(
            "POST",
            f"{sandbox}/run",
            '{"command": "sleep 60"}',
            {"Content-Type": "application/json", "Accept": accept},
        )
        while not client.ask("GET", f"{sandbox}/processes").json["processes"]:
            time.sleep(0.05)
        connection.close()
        began = time.monotonic()
        while client.ask("GET", f"{sandbox}/processes").json["processes"]:
            assert time.monotonic() - began < 60
            time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_server_finishes_running_commands(number: int) -> None:
    with serving("--grace-seconds", "60") as server:
        client = Client(server.url)
        sandbox = client.create()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(client.run, sandbox, "touch begun; sleep 3; echo finished")
            wait_for_file(client, sandbox, "begun")
            server.process.send_signal(number)
            with pytest.raises(ConnectionError):
                while not running.done():
                    client.ask("GET", "/healthz")
            assert running.result().json["stdout"] == "finished\n"
        assert server.wait() == (0, "")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_after_the_grace_period_running_commands_are_ended_and_answered(accept: str) -> None:
    with serving(*GRACEFUL) as server:
        client = Client(server.url)
        sandbox = client.create()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(
                client.ask,
                "POST",
                f"{sandbox}/run",
                {"command": "touch begun; sleep 60"},
                headers={"Accept": accept},
            )
            wait_for_file(client, sandbox, "begun")
            began = time.monotonic()
            status, errors = server.terminate()
            assert 1.5 < time.monotonic() - began < 60
            assert (status, errors) == (0, "")
            assert b'"sandbox_closed"' in running.result().body


def test_a_kept_connection_is_told_that_the_server_ends() -> None:
    """An idle connection is closed, and no new request is accepted."""
    with serving(*GRACEFUL) as server:
        client = Client(server.url)
        sandbox = client.create()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(client.run, sandbox, "touch begun; sleep 60")
            wait_for_file(client, sandbox, "begun")
            server.process.send_signal(signal.SIGTERM)
            answer = running.result()
        assert answer.headers["connection"] == "close"
        server.wait()


def wait_for_file(client: Client, sandbox: str, name: str) -> None:
    """Wait until a command has made a file."""
    while client.ask("GET", f"{sandbox}/files/stat?path={name}").status != 200:
        time.sleep(0.02)


def test_a_port_in_use_is_reported_in_one_line(client: Client) -> None:
    port = client.url.rpartition(":")[2]
    with pytest.raises(
        DidNotStart, match=f"^wasmsand: cannot listen on .* port {port}: Address al"
    ):
        ServerProcess("--port", port)


def test_a_server_for_other_machines_needs_tokens() -> None:
    with pytest.raises(
        DidNotStart, match=r"^wasmsand: refusing to listen on 0\.0\.0\.0 without tokens"
    ):
        ServerProcess("--host", "0.0.0.0")


def test_a_client_that_leaves_in_the_middle_of_an_archive_upsets_nobody() -> None:
    with serving() as server:
        client = Client(server.url)
        sandbox = client.create()
        client.run(sandbox, "head -c 30M /dev/urandom > noise")
        parts = urlsplit(server.url)
        for size in range(1, 400_000, 40_000):
            with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
                target = f"{sandbox}/files/tar?path=/home/user"
                request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                connection.sendall(request.encode())
                left = size
                while left > 0:
                    left -= len(connection.recv(left))
        assert client.run(sandbox, "echo well").json["stdout"] == "well\n"
