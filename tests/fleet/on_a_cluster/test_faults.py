"""Nodes, servers and hosts that are lost, drained or slow.

The tests are in this order because nodes that are lost do not come back, and because Ray chooses
where a host starts again: the first tests need hosts on all nodes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.fleet.on_a_cluster.conftest import SERVE
from tests.fleet.on_a_cluster.homes import host_of, place_of
from wasmsand import Sandbox, SandboxClosedError, SandboxCrashedError, ServerError
from wasmsand.fleet import Fleet
from wasmsand.fleet.cluster import Home, homes_of
from wasmsand.fleet.local_nodes import LocalNodes
from wasmsand.fleet.values import parse_address

SANDBOXES = int(os.environ.get("WASMSAND_FLEET_SANDBOXES", "12"))
"""How many work while nodes are killed; 100 in the full form."""
_PATIENCE_SECONDS = 300.0


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)


def is_serving(fleet: Fleet) -> bool:
    return {each.state for each in fleet.status()} == {"serving"}


def home(fleet: Fleet, name: str) -> Home:
    return next(each for each in homes_of(parse_address(fleet.url)).all() if each.name == name)


def server_pid(fleet: Fleet, name: str) -> int:
    return int(home(fleet, name).ask("server_pid", time.monotonic() + _PATIENCE_SECONDS))


class Worker(threading.Thread):
    """Uses one sandbox until it is told to stop, or the sandbox is lost."""

    def __init__(self, sandbox: Sandbox, stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self.sandbox = sandbox
        self._stopping = stopping
        self.done = 0
        self.uncertain = 0
        self.loss: Exception | None = None
        self.bug: Exception | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    assert self.sandbox.commands.run("cat first").stdout == "first"
                    self.done += 1
                except ServerError as error:
                    if error.code not in ("host_lost", "worker_lost"):
                        raise
                    self.uncertain += 1
        except SandboxClosedError as loss:
            self.loss = loss
        except Exception as bug:
            self.bug = bug


def _begun(fleet: Fleet, count: int, nodes: set[str], *, is_stored: bool) -> list[Sandbox]:
    """At least `count` sandboxes with a file, some of them on these nodes."""
    made: list[Sandbox] = []
    while len(made) < count or not nodes & {place_of(each).node for each in made}:
        sandbox = Sandbox.connect(fleet.url)
        sandbox.files.write("first", "first")
        if is_stored:
            sandbox.pause()
        made.append(sandbox)
        assert len(made) < 20 * count + 50, "no host is on these nodes"
    return made


def test_a_drained_node_loses_nothing(nodes: LocalNodes, stored: Fleet) -> None:
    head = nodes.nodes[0].node_id
    made = _begun(stored, 1, {each.node_id for each in nodes.nodes[1:]}, is_stored=True)
    sandbox = next(each for each in made if place_of(each).node != head)
    node = place_of(sandbox).node
    shell = sandbox.shell()
    shell.run("x=5; cd /tmp; echo kept > file")
    moved = [each.name for each in stored.status() if each.node == node]
    assert stored.drain(node[:16]) == moved
    assert shell.run("echo $x; pwd; cat file").stdout == "5\n/tmp\nkept\n"
    assert node not in {each.node for each in stored.status()}
    for each in made:
        each.kill()
    nodes.lose(next(each for each in nodes.nodes if each.node_id == node))
    nodes.add()


def test_a_fleet_without_a_store_is_not_drained_by_mistake(unstored: Fleet) -> None:
    wait_until(lambda: is_serving(unstored))
    with pytest.raises(ServerError) as caught:
        unstored.drain(unstored.status()[0].node)
    assert caught.value.code == "no_store"
    assert is_serving(unstored)


def test_nodes_are_killed_while_sandboxes_work(
    nodes: LocalNodes, stored: Fleet, unstored: Fleet
) -> None:
    victims: list[Any] = nodes.nodes[1:]
    lost_nodes = {each.node_id for each in victims}
    kept = _begun(stored, SANDBOXES // 2, lost_nodes, is_stored=True)
    others = _begun(unstored, SANDBOXES // 2, lost_nodes, is_stored=False)
    doomed = [each for each in others if place_of(each).node in lost_nodes]
    stopping = threading.Event()
    workers = [Worker(each, stopping) for each in kept + others]
    for worker in workers:
        worker.start()
    wait_until(lambda: all(worker.done for worker in workers))
    for victim in list(victims):
        nodes.lose(victim)
    wait_until(lambda: all(w.loss for w in workers if w.sandbox in doomed))
    counts = {worker: worker.done for worker in workers}
    wait_until(lambda: all(w.done > n or w.loss or w.bug for w, n in counts.items()))
    stopping.set()
    for worker in workers:
        worker.join(_PATIENCE_SECONDS)
    assert not any(worker.is_alive() for worker in workers)
    assert [worker.bug for worker in workers if worker.bug] == []
    losses = {worker.sandbox: worker.loss for worker in workers if worker.loss}
    assert set(losses) == set(doomed)
    assert Counter(type(loss) for loss in losses.values()) == {SandboxCrashedError: len(doomed)}
    assert {place_of(each).node for each in kept}.isdisjoint(lost_nodes)
    for sandbox in kept:
        assert sandbox.commands.run("cat first").stdout == "first"
        sandbox.kill()


def test_a_node_that_answers_slowly_gets_no_new_sandboxes(unstored: Fleet) -> None:
    slow = server_pid(unstored, "host-1")
    os.kill(slow, signal.SIGSTOP)
    try:
        time.sleep(1.5)  # what hosts have said is used for a second
        made = [Sandbox.connect(unstored.url) for _ in range(6)]
        assert "host-1" not in {host_of(each) for each in made}
        for each in made:
            assert each.commands.run("echo well").stdout == "well\n"
            each.kill()
    finally:
        os.kill(slow, signal.SIGCONT)


def test_a_server_that_dies_comes_back_with_what_was_stored(stored: Fleet) -> None:
    with Sandbox.connect(stored.url) as sandbox:
        sandbox.files.write("file", "kept")
        sandbox.pause()
        before = place_of(sandbox)
        os.kill(server_pid(stored, host_of(sandbox)), signal.SIGKILL)
        assert sandbox.files.read_text("file") == "kept"
        assert sandbox.commands.run("cat file").stdout == "kept"
        assert place_of(sandbox).generation != before.generation


def test_a_server_that_dies_without_a_store_is_a_crash(unstored: Fleet) -> None:
    with Sandbox.connect(unstored.url) as sandbox:
        sandbox.files.write("file", "lost")
        host = host_of(sandbox)
        os.kill(server_pid(unstored, host), signal.SIGKILL)
        with pytest.raises(SandboxCrashedError, match="no store"):
            sandbox.commands.run("cat file")
        with pytest.raises(SandboxClosedError):
            sandbox.files.read_text("file")
    wait_until(lambda: is_serving(unstored))


def test_a_request_on_its_way_is_not_repeated(stored: Fleet) -> None:
    with Sandbox.connect(stored.url) as sandbox:
        sandbox.commands.run("true")
        outcome: list[object] = []

        def work() -> None:
            try:
                outcome.append(sandbox.commands.run("touch began; sleep 600"))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        wait_until(lambda: sandbox.files.exists("began"))
        os.kill(server_pid(stored, host_of(sandbox)), signal.SIGKILL)
        thread.join(_PATIENCE_SECONDS)
        assert not thread.is_alive()
        assert isinstance(outcome[0], ServerError)
        assert outcome[0].code == "host_lost"
        assert sandbox.commands.run("echo on").stdout == "on\n"


@pytest.mark.xfail(strict=True, reason="L234: a fleet does not balance what runs")
def test_a_node_that_joins_gets_a_host(nodes: LocalNodes, stored: Fleet) -> None:
    wait_until(lambda: is_serving(stored))
    joined = nodes.add().node_id
    fleet = Fleet.up(nodes.address, serve_options=SERVE)  # creates what is missing
    assert joined in {each.node for each in fleet.status()}
