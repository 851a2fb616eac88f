"""One server for the tests of a module, and a new sandbox on it for each test.

The tests of some modules run twice: on a server with one process, and on one with two workers.
Together with the tests of terminals, ports and stores, half of which use workers, they make every
kind of request: plain ones, uploads, streams, archives and switched connections.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.server import Client, ServerProcess, serving

TWICE = {"test_requests", "test_python_sessions"}
"""Modules whose server also has workers."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if "workers" in metafunc.fixturenames and module in TWICE:
        metafunc.parametrize("workers", ["1", "2"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def workers(request: pytest.FixtureRequest) -> str:
    """The number of workers of the module's server."""
    chosen: str = getattr(request, "param", "1")
    return chosen


@pytest.fixture(scope="module")
def server(workers: str) -> Iterator[ServerProcess]:
    with serving("--workers", workers) as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Client:
    return Client(server.url)


@pytest.fixture
def sandbox(client: Client) -> Iterator[str]:
    """The path of a sandbox."""
    path = client.create()
    yield path
    client.ask("DELETE", path)
