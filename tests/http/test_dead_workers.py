"""Requests whose worker dies: what is repeated, what is lost, and what comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.http.server import Answer, Client, ServerProcess
from tests.http.worker_processes import kill_one, wait_until_ready, workers_of
from tests.waiting import wait_until
from wasmsand.http.workers.slot import NothingSent, Slot

_SECONDS = 120.0


class HeldStore:
    """A server with two workers and a store whose disk can be stopped."""

    def __init__(self, place: Path, *options: str) -> None:
        self.place = place
        self.server = ServerProcess(
            "--workers",
            "2",
            "--store",
            str(place / "store"),
            *options,
            module="tests.http.held_store",
            environ={"WASMSAND_TEST_HELD": str(place)},
        )
        self.client = Client(self.server.url)
        self.workers = sorted(workers_of(self.server, 2))  # in the order of their slots
        wait_until_ready(self.client, 2)

    @contextmanager
    def held(self, call: str, work: Callable[[], Answer]) -> Iterator[Callable[[], Answer]]:
        """Do `work`, until the store waits in `call`. At the end of the block, it goes on. Yields
        what waits for the answer."""
        with ThreadPoolExecutor(1) as pool:
            (self.place / call).touch()
            try:
                working = pool.submit(work)
                wait_until((self.place / f"{call}.held").exists, seconds=_SECONDS)
                yield lambda: working.result(_SECONDS)
            finally:
                (self.place / call).unlink()

    def wait_for_metric(self, line: bytes) -> None:
        """Wait until the metrics have a line."""
        wait_until(
            lambda: b"\n%s\n" % line in self.client.ask("GET", "/metrics").body, seconds=_SECONDS
        )

    def ids(self) -> list[str]:
        """The ids of all sandboxes."""
        return [each["id"] for each in self.client.ask("GET", "/v1/sandboxes").json["sandboxes"]]


@pytest.fixture
def held_store(tmp_path: Path) -> Iterator[HeldStore]:
    store = HeldStore(tmp_path)
    yield store
    store.server.terminate()


def test_a_sandbox_that_was_being_stored_when_its_worker_died_can_be_deleted(
    held_store: HeldStore,
) -> None:
    client = held_store.client
    with held_store.held("commit", lambda: client.ask("POST", "/v1/sandboxes", {})) as created:
        for pid in held_store.workers:
            kill_one(held_store.server, pid)
        held_store.wait_for_metric(b"wasmsand_workers 0.0")
    assert created().error[:2] == (503, "worker_lost")
    (identity,) = held_store.ids()
    path = f"/v1/sandboxes/{identity}"
    shown = client.ask("GET", path)
    assert (shown.status, shown.json.get("state")) == (200, "paused"), shown
    assert client.ask("DELETE", path).json == {"killed": True}
    assert held_store.ids() == []


def test_a_deletion_whose_worker_dies_is_answered_by_the_next_one(held_store: HeldStore) -> None:
    client = held_store.client
    path = client.create()
    assert client.ask("POST", f"{path}/pause", {}).status == 200
    with held_store.held("delete", lambda: client.ask("DELETE", path)) as deleted:
        for pid in held_store.workers:
            kill_one(held_store.server, pid)
    assert deleted().json == {"killed": True}
    assert client.ask("DELETE", path).error[:2] == (404, "sandbox_not_found")
    assert held_store.ids() == []


def test_requests_that_are_safe_to_repeat_survive_their_worker(held_store: HeldStore) -> None:
    """All of them are on their way to workers that do not answer, and then die."""
    client, server = held_store.client, held_store.server
    shown, resumed, killed = (client.create() for _ in range(3))
    for path in (shown, resumed, killed):
        client.run(path, "echo kept > file")
        assert client.ask("POST", f"{path}/pause", {}).status == 200
    taken = client.ask("POST", f"{shown}/snapshots", {"name": "base"}).json["id"]
    assert client.ask("POST", f"{shown}/pause", {}).status == 200  # stores the snapshot too
    requests: list[tuple[str, str, object]] = [
        ("GET", shown, None),
        ("GET", f"{shown}/snapshots", None),
        ("POST", f"{resumed}/resume", {}),
        ("DELETE", killed, None),
        ("DELETE", f"/v1/snapshots/{taken}", None),
        ("GET", "/v1/sandboxes", None),
        ("GET", "/v1/snapshots", None),
    ]
    workers = workers_of(server, 2)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(len(requests)) as pool:
        asked = [pool.submit(client.ask, *request) for request in requests]
        time.sleep(0.5)  # until they are on their way
        assert not any(each.done() for each in asked)
        for pid in workers:
            kill_one(server, pid)
        answers = [each.result(_SECONDS) for each in asked]
    assert [answer.status for answer in answers] == [200] * len(requests), answers
    assert answers[0].json["state"] == "paused"
    assert answers[2].json["state"] == "running"
    assert client.run(resumed, "cat file").json["stdout"] == "kept\n"
    assert sorted(held_store.ids()) == sorted(path.rpartition("/")[2] for path in (shown, resumed))
    assert client.ask("GET", "/v1/snapshots").json == {"snapshots": []}


def test_a_command_is_not_repeated(held_store: HeldStore) -> None:
    client, server = held_store.client, held_store.server
    path = client.create()
    workers = workers_of(server, 2)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.run, path, "true")
        time.sleep(0.5)  # until it is on its way
        for pid in workers:
            kill_one(server, pid)
        assert asked.result(_SECONDS).error[:2] == (503, "worker_lost")


def test_a_place_that_becomes_free_is_not_given_to_a_dead_worker(tmp_path: Path) -> None:
    """A worker asks for room, and dies while another one pauses a sandbox."""
    store = HeldStore(tmp_path, "--max-sandboxes", "1")
    try:
        client = store.client
        client.create()  # in the first slot
        with store.held("commit", lambda: client.ask("POST", "/v1/sandboxes", {})) as created:
            kill_one(store.server, store.workers[1])
            store.wait_for_metric(b"wasmsand_worker_deaths_total 1.0")
        assert created().error[:2] == (503, "worker_lost")
        wait_until_ready(client, 2)
        client.create()
    finally:
        store.server.terminate()


@pytest.mark.no_userland
def test_a_worker_that_is_dead_already_gets_nothing() -> None:
    async def main() -> None:
        slot = Slot(0, None)
        mine, others = socket.socketpair()
        slot.link = mine
        slot.ready.set()
        others.close()
        with pytest.raises(NothingSent):
            async with slot.connection():
                pass
        slot.ended()
        assert slot.in_flight == 0

    asyncio.run(main())
