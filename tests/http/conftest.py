"""One server for the tests of a module, and a new sandbox on it for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.server import Client, ServerProcess, serving


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving() as server:
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
