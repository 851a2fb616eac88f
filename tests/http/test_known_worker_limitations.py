"""Known limits of workers, by their IDs in docs/limitations.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.server import Client, ServerProcess, serving
from tests.http.worker_processes import kill_one, wait_until_ready, workers_of
from wasmsand import Sandbox, ServerError


@pytest.mark.xfail(strict=True, reason="L215: limits of threads and terminals hold per worker")
def test_terminals_are_bounded_over_all_workers() -> None:
    with serving("--workers", "2", "--max-terminals", "1") as server:
        workers_of(server, 2)
        wait_until_ready(Client(server.url), 2)
        with Sandbox.connect(server.url) as one, Sandbox.connect(server.url) as two:
            first = one.pty("cat")
            with pytest.raises(ServerError):
                two.pty("cat").kill()
            first.kill()


@pytest.mark.xfail(strict=True, reason="L216: the account of a sandbox ends with its worker")
def test_an_account_survives_the_worker(tmp_path: Path) -> None:
    server = ServerProcess("--workers", "2", "--store", str(tmp_path / "store"))
    try:
        client = Client(server.url)
        path = client.create()
        client.run(path, "true")
        for pid in workers_of(server, 2):
            kill_one(server, pid)
        assert client.ask("GET", path).json["accounting"]["commands"] == 1
    finally:
        server.terminate()
