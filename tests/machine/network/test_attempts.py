"""No attempt of the table reaches what the policy refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.network.attempts import ATTEMPTS, BYTES_OUT, Servers, results, table

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "threat-model.md"
_MOVED_AT_ONCE = 1 << 18
"""Bytes that may be under way when a budget ends."""


@pytest.fixture(scope="module")
def outcome() -> tuple[list[str], Servers]:
    return results()


def test_every_attempt_ends_as_the_table_says(outcome: tuple[list[str], Servers]) -> None:
    found, _ = outcome
    expected = {attempt.what: attempt.result for attempt in ATTEMPTS}
    assert dict(zip(expected, found, strict=True)) == expected


def test_the_internal_service_was_never_reached(outcome: tuple[list[str], Servers]) -> None:
    assert outcome[1].internal_hits == []


def test_only_allowed_names_were_looked_up(outcome: tuple[list[str], Servers]) -> None:
    looked_up = set(outcome[1].looked_up)
    assert looked_up
    assert {name for name in looked_up if not name.endswith(".wild.test")} == set()


def test_no_more_than_the_budget_was_sent(outcome: tuple[list[str], Servers]) -> None:
    assert 0 < sum(outcome[1].sunk) <= BYTES_OUT + _MOVED_AT_ONCE


@pytest.mark.no_userland
def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    begin, end = "<!-- attempts:begin -->\n", "\n<!-- attempts:end -->"
    assert text[text.index(begin) + len(begin) : text.index(end)] == table(), (
        "run python -m tests.machine.network.attempts"
    )
