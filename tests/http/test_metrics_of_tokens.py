"""A token sees its own metrics, and not that other tokens exist."""

from __future__ import annotations

from tests.http.server import Client, serving

ALICE, BOB = "token-of-alice-0123456789", "token-of-bob-0123456789"


def test_a_token_sees_neither_names_nor_numbers_of_others() -> None:
    with serving(environ={"WASMSAND_TOKENS": f"alice:{ALICE},bob:{BOB}"}) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        sandbox = alice.create()
        numbers = bob.ask("GET", "/metrics").body.decode()
        assert alice.ask("DELETE", sandbox).status == 200
    assert "alice" not in numbers
    assert sandbox.rpartition("/")[2] not in numbers
    assert [line for line in numbers.splitlines() if line.startswith("wasmsand_sandboxes ")] == [
        "wasmsand_sandboxes 0.0"
    ]
