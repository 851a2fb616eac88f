"""What a server's store cannot do yet; docs/limitations.md has the same IDs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="pip install 'wasmsand[serve]'")

from tests.http.test_store import stored
from tests.waiting import wait_until
from wasmsand import Network, Sandbox, SandboxOptions, ServerError


@pytest.mark.xfail(
    reason="L140: clients that are connected do not see variables that another one sets",
    raises=AssertionError,
    strict=True,
)
def test_a_variable_that_a_client_sets_is_seen_by_another_that_is_connected(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        sandbox = Sandbox.connect(server.url)
        with Sandbox.connect(server.url, id=sandbox.id) as other:
            sandbox.env.set("NAME", "value")
            assert sandbox.commands.run("echo $NAME").stdout == "value\n"
            assert other.commands.run("echo $NAME").stdout == "value\n"


@pytest.mark.xfail(
    reason="L141: a stored snapshot does not take secrets again", raises=ServerError, strict=True
)
def test_a_stored_snapshot_with_secrets_is_used_again(tmp_path: Path) -> None:
    network = Network(allow=["127.0.0.1:9"], secrets={"127.0.0.1": {"X-Key": "secret"}})
    with stored(tmp_path / "store", "--allow-net", "127.0.0.1:9") as server:
        sandbox = Sandbox.connect(server.url, options=SandboxOptions(network=network))
        snapshot = sandbox.snapshot()
        client = server.client()
        wait_until(
            lambda: client.ask("GET", "/v1/snapshots").json["snapshots"][0]["is_stored"],
            seconds=30,
            pause=0.1,
        )
        server.restart()
        Sandbox.from_snapshot(snapshot).kill()
