"""Barriers between tokens: separate processes, separate metrics; and which clients are refused."""

from __future__ import annotations

import gzip
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.server import Client, ServerProcess, serving, write_tokens
from tests.serving.floods import connect
from tests.waiting import wait_until

ALICE, TRUDY, OSCAR = "alice-has-a-token-of-her-own", "trudy-is-trusted-by-all", "oscar-operates-it"
TOKENS: dict[str, dict[str, object]] = {
    "alice": {"token": ALICE},
    "trudy": {"token": TRUDY, "trusted": True},
    "oscar": {"token": OSCAR, "all_metrics": True},
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokens(tmp_path_factory.mktemp("tokens") / "tokens.toml", TOKENS)


@pytest.fixture(scope="module")
def server(tokens: Path) -> Iterator[ServerProcess]:
    with serving("--tokens-file", str(tokens), "--spare-processes", "1") as server:
        yield server


@pytest.fixture(scope="module")
def open_server() -> Iterator[ServerProcess]:
    with serving() as server:
        yield server


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def sandbox_processes(server: ServerProcess) -> int:
    """The number of sandbox and spare processes, once no more are being started."""
    count, since = -1, time.monotonic()
    while time.monotonic() - since < 3:
        direct = children(server.process.pid)
        templates = [pid for pid in direct if b"--template" in command_line(pid)]
        found = len(direct) - len(templates) + sum(len(children(pid)) for pid in templates)
        if found != count:
            count, since = found, time.monotonic()
        time.sleep(0.1)
    return count


def test_sandboxes_of_a_token_have_processes_unless_it_is_trusted(server: ServerProcess) -> None:
    before = sandbox_processes(server)
    alice, trudy = Client(server.url, ALICE), Client(server.url, TRUDY)
    trusted = trudy.create()
    assert sandbox_processes(server) == before
    isolated = alice.create()
    assert sandbox_processes(server) == before + 1
    for client, sandbox in ((alice, isolated), (trudy, trusted)):
        assert client.run(sandbox, "echo hi | tr a-z A-Z").json["stdout"] == "HI\n"
        assert client.ask("DELETE", sandbox).status == 200
    assert sandbox_processes(server) == before


def test_without_tokens_sandboxes_are_in_the_servers_process(open_server: ServerProcess) -> None:
    client = Client(open_server.url)
    sandbox = client.create()
    assert sandbox_processes(open_server) == 0
    client.ask("DELETE", sandbox)


@pytest.mark.parametrize(("isolation", "processes"), [("process", 1), ("none", 0)])
def test_the_isolation_option_overrides_the_tokens(
    tokens: Path, isolation: str, processes: int
) -> None:
    options = ("--isolation", isolation, "--spare-processes", "1")
    with serving("--tokens-file", str(tokens), *options) as server:
        before = sandbox_processes(server)
        assert before == processes  # the spare
        for token in (ALICE, TRUDY):
            Client(server.url, token).create()
        assert sandbox_processes(server) == before + 2 * processes


def test_processes_end_with_their_server(tokens: Path) -> None:
    with serving("--tokens-file", str(tokens), "--spare-processes", "1") as server:
        alice = Client(server.url, ALICE)
        alice.run(alice.create(), "true")
        sandbox_processes(server)
        pids = [
            int(word)
            for task in Path(f"/proc/{server.process.pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
        assert pids
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_token_sees_its_own_figures_only(server: ServerProcess) -> None:
    alice, trudy = Client(server.url, ALICE), Client(server.url, TRUDY)
    kept, other = alice.create(), trudy.create()
    text = alice.ask("GET", "/metrics").body.decode()
    for name in ("trudy", "oscar", "alice", "process_", "python_"):
        assert name not in text
    figures = dict(line.split(" ") for line in text.splitlines() if line[0] != "#")
    assert float(figures["wasmsand_sandboxes"]) == 1
    assert float(figures["wasmsand_sandboxes_created_total"]) >= 1
    assert float(figures["wasmsand_token_requests_total"]) >= 2
    everything = Client(server.url, OSCAR).ask("GET", "/metrics").body.decode()
    assert 'wasmsand_sandboxes_created_total{token="trudy"}' in everything
    assert "process_open_fds" in everything
    alice.ask("DELETE", kept)
    trudy.ask("DELETE", other)


@pytest.mark.parametrize(
    "headers",
    [
        "",
        "Host:\r\n",
        "Host: evil.example\r\n",
        "Host: 127.0.0.1:x\r\n",
        "Host: 127.0.0.1:80:80\r\n",
        "Host: 127.0.0.1@evil.example\r\n",
        "Host: [::1\r\n",
        "Host: ::1\r\n",
        "Host: [::1]evil.example\r\n",
        "Host: 127.0.0.1/\r\n",
        "Host: 127.0.0.1 evil.example\r\n",
        "Host: 127.0.0.1\r\nHost: evil.example\r\n",
        "Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n",
        "Host: 127.0.0.1\r\nOrigin: null\r\n",
        "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n",
    ],
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_server_without_tokens_answers_this_machine_only(
    open_server: ServerProcess, headers: str, version: str
) -> None:
    for target in ("/v1/sandboxes", "/healthz", "http://127.0.0.1/v1/sandboxes"):
        answer = raw(open_server, f"GET {target} HTTP/{version}\r\n{headers}\r\n".encode())
        assert answer[9:12] in (b"403", b"400", b"404"), answer
        assert (answer[9:12] == b"404") <= target.startswith("http")


def test_a_server_without_tokens_answers_programs_of_this_machine(
    open_server: ServerProcess,
) -> None:
    for host in ("localhost", "127.0.0.1:8750", "[::1]:80", "LOCALHOST"):
        request = f"GET /v1/sandboxes HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert raw(open_server, request.encode())[9:12] == b"200"


def raw(server: ServerProcess, request: bytes) -> bytes:
    with connect(server.url) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(65536):
            received += data
        return received


def test_a_body_that_is_compressed_is_refused(open_server: ServerProcess) -> None:
    client = Client(open_server.url)
    sandbox = client.create()
    bomb = gzip.compress(bytes(10_000_000))
    answer = client.ask(
        "PUT", f"{sandbox}/files?path=x", body=bomb, headers={"Content-Encoding": "gzip"}
    )
    assert answer.error[:2] == (415, "unsupported_media_type")
    client.ask("DELETE", sandbox)


def test_an_upgrade_is_answered_as_a_plain_request(open_server: ServerProcess) -> None:
    answer = raw(
        open_server,
        b"GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_variables_that_a_sandbox_keeps_are_bounded(open_server: ServerProcess) -> None:
    client = Client(open_server.url)
    sandbox = client.create()
    big = {f"V{number}": "x" * 100_000 for number in range(15)}
    assert client.ask("PATCH", f"{sandbox}/env", {"set": big}).status == 200
    more = {f"W{number}": "x" * 100_000 for number in range(15)}
    answer = client.ask("PATCH", f"{sandbox}/env", {"set": more})
    assert answer.error[:2] == (400, "invalid_value")
    answer = client.ask("POST", "/v1/sandboxes", {"env": {"A": "x" * 3_000_000}})
    assert answer.error[:2] == (400, "invalid_value")
    client.ask("DELETE", sandbox)


def test_requests_that_come_all_at_once_are_answered_in_order(open_server: ServerProcess) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    received = raw(open_server, one * 50 + last)
    assert received.count(b"HTTP/1.1 200 ") == 50
    assert received.rpartition(b"HTTP/1.1 ")[2].startswith(b"404")
