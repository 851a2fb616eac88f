"""Limits of a host: memory, load, sandbox-seconds; accounting; tokens that change; logs."""

from __future__ import annotations

import json
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.http.server import Client, ServerProcess, serving, write_tokens
from tests.http.worker_processes import kill_one, wait_until_ready, workers_of
from tests.waiting import wait_until
from wasmsand.http.failures import ApiFailure
from wasmsand.http.host_gate import HostGate, memory_of_processes
from wasmsand.http.quotas import Quotas
from wasmsand.http.tokens import Quota, Token

ALICE, BOB = "alice-alice-alice-alice", "bob-bob-bob-bob-bob-bob"
MIB = 1 << 20
HAS_TELEMETRY = bool(find_spec("opentelemetry") and find_spec("opentelemetry.sdk"))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.no_userland
class TestHostGate:
    def test_a_burst_cannot_pass_before_the_next_measurement(self) -> None:
        clock = Clock()
        gate = HostGate(100 * MIB, None, memory=lambda: 60 * MIB, clock=clock)
        gate.admit()
        gate.admit()
        with pytest.raises(ApiFailure) as caught:
            gate.admit()
        assert (caught.value.status, caught.value.code) == (503, "server_full")
        assert caught.value.retry_after == 5
        clock.now += 1
        gate.admit()

    def test_a_loaded_host_gets_no_more_sandboxes(self) -> None:
        load = [3.0]
        clock = Clock()
        gate = HostGate(None, 2.0, load=lambda: load[0], clock=clock)
        with pytest.raises(ApiFailure, match="--max-load"):
            gate.admit()
        load[0], clock.now = 1.0, clock.now + 1
        gate.admit()

    def test_what_the_system_does_not_say_is_not_limited(self) -> None:
        gate = HostGate(1, 0.1, memory=lambda: None, load=lambda: None)
        gate.admit()

    def test_memory_of_this_process_is_measured(self) -> None:
        before = memory_of_processes()
        assert before is not None
        block = b"x" * (64 * MIB)
        after = memory_of_processes()
        assert after is not None
        assert after - before > 48 * MIB
        del block


@pytest.mark.no_userland
class TestSandboxSeconds:
    def test_a_token_cannot_use_more_than_its_seconds_of_a_day(self) -> None:
        clock = Clock()
        quotas = Quotas(10, clock)
        owner = Token.of("a", ALICE, Quota(sandbox_seconds_per_day=100))
        for _ in range(2):
            quotas.reserve_sandbox(owner, 1)
        clock.now += 51
        assert quotas.sandbox_seconds(owner) == 102
        with pytest.raises(ApiFailure) as caught:
            quotas.reserve_sandbox(owner, 1)
        assert (caught.value.status, caught.value.code) == (429, "quota_exceeded")
        for _ in range(2):
            quotas.release_sandbox(owner, 1)
        assert caught.value.retry_after is not None
        clock.now += caught.value.retry_after + 1
        quotas.reserve_sandbox(owner, 1)

    def test_others_are_not_affected(self) -> None:
        clock = Clock()
        quotas = Quotas(10, clock)
        one = Token.of("a", ALICE, Quota(sandbox_seconds_per_day=1))
        two = Token.of("b", BOB, Quota(sandbox_seconds_per_day=1))
        quotas.reserve_sandbox(one, 1)
        clock.now += 10
        quotas.reserve_sandbox(two, 1)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_refuses_sandboxes_beyond_the_hosts_memory(workers: str) -> None:
    with serving("--workers", workers, "--host-memory", "1M") as server:
        answer = Client(server.url).ask("POST", "/v1/sandboxes", {})
        assert answer.error[:2] == (503, "server_full")
        assert "--host-memory" in answer.error[2]
        assert answer.headers["retry-after"] == "5"


def values_of(client: Client) -> dict[str, float]:
    """The metrics of the client's token."""
    lines = client.ask("GET", "/metrics").body.decode().splitlines()
    plain = [line for line in lines if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in plain}


def test_the_accounts_of_sandboxes_add_up_to_the_tokens_and_the_servers(tmp_path: Path) -> None:
    token = {"trusted": True}
    tokens = write_tokens(
        tmp_path / "tokens",
        {
            "alice": {"token": ALICE, **token},
            "bob": {"token": BOB, **token, "all_metrics": True},
        },
    )
    with serving("--workers", "2", "--tokens-file", str(tokens)) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        counts = [3, 1, 2]
        for count in counts:
            path = alice.create()
            for _ in range(count):
                assert alice.run(path, "true").status == 200
        bob.run(bob.create(), "true")
        accounts = [
            each["accounting"] for each in alice.ask("GET", "/v1/sandboxes").json["sandboxes"]
        ]
        assert [each["commands"] for each in accounts] == counts
        own = values_of(alice)
        assert own["wasmsand_token_commands_total"] == sum(counts)
        seconds = sum(each["command_seconds"] for each in accounts)
        assert own["wasmsand_token_command_seconds_total"] == pytest.approx(seconds)
        whole = values_of(bob)
        assert whole['wasmsand_token_commands_total{token="alice"}'] == sum(counts)
        assert whole['wasmsand_token_commands_total{token="bob"}'] == 1
        assert whole["wasmsand_command_seconds_count"] == sum(counts) + 1
        in_memory = sum(each["sandbox_seconds"] for each in accounts)
        assert own["wasmsand_sandbox_seconds"] >= in_memory > 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_token_that_is_revoked_while_in_use_ends_its_requests(
    workers: str, tmp_path: Path
) -> None:
    alice: dict[str, object] = {"token": ALICE, "trusted": True}
    bob: dict[str, object] = {"token": BOB, "trusted": True}
    path = write_tokens(tmp_path / "tokens", {"alice": alice, "bob": bob})
    with serving("--workers", workers, "--tokens-file", str(path)) as server:
        first, other = Client(server.url, ALICE), Client(server.url, BOB)
        mine, theirs = first.create(), other.create()
        first.run(mine, "echo kept > file")
        with ThreadPoolExecutor(2) as pool:
            running = pool.submit(first.run, mine, "sleep 600", timeout_ms=600_000)
            untouched = pool.submit(other.run, theirs, "sleep 3; echo done")
            time.sleep(0.5)
            write_tokens(path, {"bob": bob})
            with pytest.raises(ConnectionError):
                running.result(60)
            assert untouched.result(60).json["stdout"] == "done\n"
        assert first.ask("GET", mine).error[:2] == (401, "unauthorized")
        # A new text under the same name: the sandboxes belong to the name.
        write_tokens(path, {"bob": bob, "alice": {**alice, "token": "another-text-for-alice"}})
        again = Client(server.url, "another-text-for-alice")
        until = time.monotonic() + 60
        while again.ask("GET", mine).status == 401:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert again.run(mine, "cat file").json["stdout"] == "kept\n"


def test_a_file_of_tokens_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "tokens", {"alice": {"token": ALICE}})
    server = ServerProcess("--workers", "1", "--tokens-file", str(path))
    path.write_text("token = []\n")
    time.sleep(2.5)
    assert Client(server.url, ALICE).ask("GET", "/v1/sandboxes").status == 200
    assert Client(server.url).ask("GET", "/v1/sandboxes").status == 401
    status, errors = server.terminate()
    assert status == 0
    assert "the old tokens stay" in errors


def test_a_client_that_does_not_read_neither_fills_memory_nor_delays_others() -> None:
    with serving("--workers", "2") as server:
        client = Client(server.url)
        sandbox = client.create()
        client.run(sandbox, "head -c 192M /dev/zero > big")
        before = sum(map(_anonymous, [server.process.pid, *workers_of(server, 2)]))
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as slow:
            target = f"{sandbox}/files/tar?path=/home/user"
            slow.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert slow.recv(12) == b"HTTP/1.1 200"
            time.sleep(1)
            assert client.run(sandbox, "echo well").json["stdout"] == "well\n"
            after = sum(map(_anonymous, [server.process.pid, *workers_of(server, 2)]))
        assert after - before < 96 * MIB


def _anonymous(pid: int) -> int:
    """Memory of a process that is not a file, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def test_a_store_that_disappears_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    store, away = tmp_path / "store", tmp_path / "away"
    server = ServerProcess("--workers", "2", "--store", str(store), "--isolation", "none")
    try:
        client = Client(server.url)
        paths = [client.create() for _ in range(2)]
        for path in paths:
            client.run(path, "echo before > file")
        store.rename(away)
        assert client.ask("POST", "/v1/sandboxes", {}).error[:2] == (507, "store_failed")
        for path in paths:  # what is in memory goes on
            assert client.run(path, "cat file").json["stdout"] == "before\n"
        away.rename(store)
        client.create()
        for path in paths:
            assert client.ask("POST", f"{path}/pause", {}).status == 200
            assert client.run(path, "cat file").json["stdout"] == "before\n"
    finally:
        status, _ = server.terminate()
    assert status == 0


def test_a_sandbox_that_is_killed_while_the_disk_is_full_does_not_come_back(
    tmp_path: Path,
) -> None:
    server = ServerProcess("--workers", "2", "--store", str(tmp_path), "--isolation", "none")
    try:
        client = Client(server.url)
        wait_until_ready(client, 2)
        doomed, kept = [client.create() for _ in range(4)], client.create()
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        # The front process cannot write, as on a full disk.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        for path in doomed:
            assert client.ask("DELETE", path).status == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        for pid in workers_of(server, 2):
            kill_one(server, pid)
        wait_until_ready(client, 2)
        left = client.ask("GET", "/v1/sandboxes").json["sandboxes"]
        assert [f"/v1/sandboxes/{each['id']}" for each in left] == [kept]
        client.create()  # the store is written: what could not be deleted is deleted now
        wait_until(lambda: len(list((tmp_path / "states").iterdir())) == 2)
    finally:
        status, _ = server.terminate()
    assert status == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_log_is_json_if_wanted(workers: str) -> None:
    server = ServerProcess("--workers", workers, "--log-format", "json", "--verbose")
    client = Client(server.url)
    client.ask("DELETE", client.create())
    status, errors = server.terminate()
    assert status == 0
    events = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert len(events) >= errors.count("\n") - 1  # all but the line with the address
    ended = [each for each in events if each["message"].endswith(": killed")]
    assert [(each["level"], each["logger"]) for each in ended] == [("info", "wasmsand.http")]
    assert {"time", "process"} <= set(ended[0])


@pytest.mark.skipif(not HAS_TELEMETRY, reason="the extra otel is not installed")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_request_is_a_span_of_the_clients_trace(workers: str, tmp_path: Path) -> None:
    environ = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none"}
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    output = tmp_path / "spans"
    with output.open("wb") as stdout:
        server = ServerProcess("--workers", workers, "--otel", environ=environ, stdout=stdout)
    client = Client(server.url, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    sandbox = client.create()
    client.run(sandbox, "true")
    client.run(f"/v1/sandboxes/sbx-{'0' * 24}", "true")
    assert server.terminate() == (0, "")
    spans = _spans(output.read_text())
    assert [each["name"] for each in spans] == [
        "POST /v1/sandboxes",
        "POST /v1/sandboxes/{sandbox}/run",
        "POST /v1/sandboxes/{sandbox}/run",
    ]
    assert {each["context"]["trace_id"] for each in spans} == {f"0x{trace}"}
    attributes = [each["attributes"] for each in spans]
    assert [each["http.response.status_code"] for each in attributes] == [201, 200, 404]
    assert attributes[1]["wasmsand.sandbox"] == sandbox.rpartition("/")[2]


def _spans(text: str) -> list[dict[str, Any]]:
    """The JSON objects of the console exporter, which follow each other."""
    found, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found
