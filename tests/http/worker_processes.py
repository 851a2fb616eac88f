"""The worker processes of a server under test."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.http.server import Client, ServerProcess

_SECONDS = 120.0


def children_of(pid: int) -> list[int]:
    """The pids of a process's children."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError):  # the thread has ended
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def workers_of(server: ServerProcess, count: int) -> list[int]:
    """The pids of the workers, when there are `count`."""
    until = time.monotonic() + _SECONDS
    while len(found := children_of(server.process.pid)) != count:
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found


def wait_until_ready(client: Client, count: int) -> None:
    """Wait until `count` workers serve, so that new sandboxes are spread over them."""
    until = time.monotonic() + _SECONDS
    while b"\nwasmsand_workers %d.0\n" % count not in client.ask("GET", "/metrics").body:
        assert time.monotonic() < until
        time.sleep(0.05)


def kill_one(server: ServerProcess, pid: int) -> None:
    """Kill a worker of `server` and wait until the system has forgotten it."""
    assert pid in children_of(server.process.pid)
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + _SECONDS
    while pid in children_of(server.process.pid):
        assert time.monotonic() < until
        time.sleep(0.02)
