"""`wasmsand serve --workers 2`: what a client sees of the processes behind the server."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request

from tests.http.server import Answer, Client, ServerProcess, serving, write_tokens
from tests.http.worker_processes import children_of, kill_one, wait_until_ready, workers_of
from wasmsand import Sandbox, SandboxCrashedError, ServerError
from wasmsand.http.handlers import playground
from wasmsand.http.routing import PublicCall
from wasmsand.http.settings import Settings
from wasmsand.http.workers.front import Front

ALICE, BOB = "alice-alice-alice-alice", "bob-bob-bob-bob-bob-bob"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving("--workers", "2") as server:
        workers_of(server, 2)
        yield server


def sample(client: Client, name: str) -> float:
    """The value of a metric without labels."""
    for line in client.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    raise AssertionError(name)


def test_a_list_has_the_sandboxes_of_all_workers_oldest_first(client: Client) -> None:
    paths = [client.create(metadata={"test": "list"}) for _ in range(5)]
    ids = [path.rpartition("/")[2] for path in paths]
    wanted = "/v1/sandboxes?metadata=test%3Dlist"
    found = [each["id"] for each in client.ask("GET", wanted).json["sandboxes"]]
    assert found == ids
    page = client.ask("GET", f"{wanted}&limit=2&after={ids[1]}").json["sandboxes"]
    assert [each["id"] for each in page] == ids[2:4]
    assert client.ask("GET", f"{wanted}&after=sbx-unknown").json["sandboxes"] == []
    assert client.ask("GET", f"{wanted}&limit=1001").error[:2] == (400, "invalid_value")
    for path in paths:
        client.ask("DELETE", path)


def test_metrics_of_the_server_are_the_sum_over_its_workers(client: Client) -> None:
    before = sample(client, "wasmsand_command_seconds_count")
    paths = [client.create() for _ in range(4)]
    for path in paths:
        for _ in range(2):
            assert client.run(path, "true").status == 200
    assert sample(client, "wasmsand_command_seconds_count") - before == 8
    assert sample(client, "wasmsand_sandboxes") == 4
    assert sample(client, "wasmsand_workers") == 2
    for path in paths:
        client.ask("DELETE", path)


def test_a_sandbox_of_a_snapshot_is_made_by_the_worker_that_has_it(client: Client) -> None:
    paths = [client.create() for _ in range(2)]
    for number, path in enumerate(paths.copy()):
        client.run(path, f"echo {number} > who")
        taken = client.ask("POST", f"{path}/snapshots", {"name": "base"}).json
        made = client.ask("POST", "/v1/sandboxes", {"snapshot": taken["id"]})
        assert made.status == 201, made
        copy = f"/v1/sandboxes/{made.json['id']}"
        assert client.run(copy, "cat who").json["stdout"] == f"{number}\n"
        paths.append(copy)
    assert len(client.ask("GET", "/v1/snapshots").json["snapshots"]) == 2
    for path in paths:
        client.ask("DELETE", path)
    assert client.ask("GET", "/v1/snapshots").json["snapshots"] == []


def test_a_client_that_sends_no_more_is_still_answered(client: Client) -> None:
    client.ask("GET", "/v1/snapshots")  # all workers have started
    parts = urlsplit(client.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
        connection.sendall(b"GET /v1/snapshots HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_an_unknown_sandbox_is_not_found(client: Client) -> None:
    answer = client.run(f"/v1/sandboxes/sbx-{'0' * 24}", "true")
    assert answer.error[:2] == (404, "sandbox_not_found")


def test_a_body_that_is_refused_early_does_not_lose_the_answer(client: Client) -> None:
    target = f"/v1/sandboxes/sbx-{'0' * 24}/files?path=x"
    answer = client.ask("PUT", target, body=b"x" * 3_000_000)
    assert answer.error[:2] == (404, "sandbox_not_found")


def test_quotas_hold_over_all_workers(tmp_path: Path) -> None:
    alice: dict[str, object] = {"token": ALICE, "max_sandboxes": 3, "trusted": True}
    tokens = write_tokens(tmp_path / "tokens", {"alice": alice})
    with serving("--workers", "2", "--tokens-file", str(tokens)) as server:
        client = Client(server.url, ALICE)
        paths = [client.create() for _ in range(3)]
        assert client.ask("POST", "/v1/sandboxes", {}).error[:2] == (429, "quota_exceeded")
        for path in paths:  # what a killed sandbox had is free at once
            client.ask("DELETE", path)
            client.create()


def test_workers_have_neither_the_tokens_nor_the_environment_of_the_server(tmp_path: Path) -> None:
    environ = {"WASMSAND_TOKENS": f"alice:{ALICE}", "A_SECRET": "of-the-host"}
    with serving("--workers", "2", environ=environ) as server:
        Client(server.url, ALICE).create()
        for pid in workers_of(server, 2):
            status = Path(f"/proc/{pid}/status").read_text()
            assert "NoNewPrivs:\t1" in status
            variables = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"of-the-host" not in variables
            assert ALICE.encode() not in variables


def test_tenants_have_workers_of_their_own(tmp_path: Path) -> None:
    token = {"trusted": True}
    tokens = write_tokens(
        tmp_path / "tokens", {"alice": {"token": ALICE, **token}, "bob": {"token": BOB, **token}}
    )
    server = ServerProcess("--tenant-workers", "--tokens-file", str(tokens))
    try:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        mine = alice.create()
        (first,) = workers_of(server, 1)  # bob's is started by his first request
        theirs = bob.create()
        workers_of(server, 2)
        assert bob.run(mine, "true").error[:2] == (404, "sandbox_not_found")
        (second,) = set(workers_of(server, 2)) - {first}
        kill_one(server, second)
        assert alice.run(mine, "echo well").json["stdout"] == "well\n"
        assert bob.run(theirs, "true").error[:2] == (410, "sandbox_crashed")
        bob.create()
    finally:
        status, errors = server.terminate()
    assert status == 0
    assert "has ended with status -9" in errors


@pytest.mark.no_userland
@pytest.mark.parametrize("token", [None, ALICE])
def test_public_pages_start_no_worker(token: str | None, tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens", {"alice": {"token": ALICE}})
    with serving("--tenant-workers", "--tokens-file", str(tokens)) as server:
        client = Client(server.url, token)
        assert client.ask("GET", "/healthz").json["status"] == "ok"
        assert "/v1/sandboxes" in client.ask("GET", "/openapi.json").json["paths"]
        assert server.url.encode() in client.ask("GET", "/docs").body
        assert client.ask("GET", "/").headers["location"] == "/docs"
        assert client.ask("GET", "/playground/").error[:2] == (404, "no_such_route")
        assert client.ask("GET", "/docs?x=1").error[:2] == (400, "invalid_value")
        assert children_of(server.process.pid) == []


@pytest.mark.no_userland
def test_the_front_process_has_the_files_of_the_playground(tmp_path: Path) -> None:
    (tmp_path / "headers.json").write_text("{}")
    (tmp_path / "index.html").write_text("<p>hello")
    front = Front(Settings(workers=2, playground=str(tmp_path)))
    request = Request({"type": "http", "path_params": {"path": ""}})
    response = asyncio.run(playground.file(PublicCall(front, request)))
    assert response.body == b"<p>hello"


def test_workers_end_when_the_front_process_is_killed() -> None:
    server = ServerProcess("--workers", "2")
    workers = workers_of(server, 2)
    Client(server.url).create()
    server.terminate(signal.SIGKILL)
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


class Load:
    """Clients that run commands in sandboxes until they are told to stop."""

    def __init__(self, client: Client, paths: list[str]) -> None:
        self._client = client
        self._stop = threading.Event()
        self.answers: dict[str, list[Answer]] = {path: [] for path in paths}
        self._pool = ThreadPoolExecutor(len(paths))
        self._running = [self._pool.submit(self._run, path) for path in paths]

    def _run(self, path: str) -> None:
        while not self._stop.is_set():
            self.answers[path].append(self._client.run(path, "echo $((6 * 7)) > answer; sleep 0.1"))

    def rounds(self, count: int) -> None:
        """Wait until each sandbox has been used `count` times more."""
        before = {path: len(found) for path, found in self.answers.items()}
        until = time.monotonic() + 120
        while any(len(found) < before[path] + count for path, found in self.answers.items()):
            assert time.monotonic() < until, "a client hangs"
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        for each in self._running:
            each.result(120)
        self._pool.shutdown()


@pytest.mark.parametrize("stored", [False, True])
def test_a_worker_that_is_killed_under_load_takes_only_its_sandboxes(
    stored: bool, tmp_path: Path
) -> None:
    options = ["--store", str(tmp_path / "store")] if stored else []
    server = ServerProcess("--workers", "2", *options)
    try:
        client = Client(server.url)
        workers = workers_of(server, 2)
        wait_until_ready(client, 2)
        paths = [client.create() for _ in range(6)]
        load = Load(client, paths)
        load.rounds(2)
        if stored:
            time.sleep(3)  # the store writes a changed sandbox at most every two seconds
        kill_one(server, workers[0])
        load.rounds(6)
        load.stop()
        assert len(workers_of(server, 2)) == 2
        found = {path: Counter(_outcome(each) for each in load.answers[path]) for path in paths}
        hurt = [path for path in paths if set(found[path]) != {"ok"}]
        assert len(hurt) == 3, found
        for path in hurt:
            if stored:
                assert set(found[path]) == {"ok", "503 worker_lost"}, found
                assert client.run(path, "cat answer").json["stdout"] == "42\n"
            else:
                assert set(found[path]) == {"ok", "410 sandbox_crashed"}, found
                assert client.ask("GET", path).error[:2] == (410, "sandbox_crashed")
        left = {each["id"] for each in client.ask("GET", "/v1/sandboxes").json["sandboxes"]}
        expected = paths if stored else set(paths) - set(hurt)
        assert left == {path.rpartition("/")[2] for path in expected}
    finally:
        status, errors = server.terminate()
    assert status == 0
    assert errors.count("\n") == 1, errors
    assert "has ended with status -9" in errors


def _outcome(answer: Answer) -> str:
    return "ok" if answer.status == 200 else " ".join(map(str, answer.error[:2]))


def test_the_sdk_tells_a_crash_from_a_refusal(tmp_path: Path) -> None:
    server = ServerProcess("--workers", "2")
    try:
        with Sandbox.connect(server.url) as one, Sandbox.connect(server.url) as two:
            for pid in workers_of(server, 2):
                kill_one(server, pid)
            for sandbox in (one, two):
                with pytest.raises(SandboxCrashedError) as caught:
                    sandbox.commands.run("true")
                assert caught.value.exit_status == -9
        with Sandbox.connect(server.url) as again:
            assert again.commands.run("echo well").stdout == "well\n"
    finally:
        server.terminate()


def test_a_worker_dies_in_the_middle_of_a_stream_and_the_client_notices(tmp_path: Path) -> None:
    server = ServerProcess("--workers", "2", "--store", str(tmp_path / "store"))
    try:
        with Sandbox.connect(server.url) as sandbox:
            process = sandbox.commands.start("echo begun; sleep 600")
            assert next(iter(process)).text == "begun\n"
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(process.wait)
                time.sleep(0.5)
                for pid in children_of(server.process.pid):
                    kill_one(server, pid)
                with pytest.raises((ServerError, SandboxCrashedError)):
                    waiting.result(120)
            assert sandbox.commands.run("echo back").stdout == "back\n"
    finally:
        server.terminate()


def test_an_untrusted_token_has_a_process_for_each_sandbox_behind_its_worker() -> None:
    environ = {"WASMSAND_TOKENS": f"alice:{ALICE}"}
    with serving("--workers", "2", "--spare-processes", "1", environ=environ) as server:
        client = Client(server.url, ALICE)
        path = client.create()
        assert client.run(path, "echo hi | tr a-z A-Z").json["stdout"] == "HI\n"
        processes = [pid for worker in workers_of(server, 2) for pid in children_of(worker)]
        assert processes
        assert client.ask("DELETE", path).status == 200
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in processes):
        assert time.monotonic() < until
        time.sleep(0.05)
