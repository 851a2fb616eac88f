"""Why a test differs from native: the committed file `explanations.toml`.

Owns the format: for each suite an array of tables with `tests`, `because`, and, if the cause is a
known limitation, its ID in `docs/limitations.md`. Rules: an explanation names tests that differ,
or that fail on both sides; an explanation that is no longer needed is reported, so that the file
stays true.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.suite import Comparison, Verdict

FILE = Path(__file__).with_name("explanations.toml")


@dataclass(frozen=True)
class Explanation:
    """One cause, and the tests that differ because of it."""

    tests: tuple[str, ...]
    because: str
    limitation: str | None


class BadExplanations(Exception):
    """The file is invalid; the message names the entry."""


def load_explanations(file: Path = FILE) -> dict[str, tuple[Explanation, ...]]:
    """All explanations, by suite."""
    document = tomllib.loads(file.read_text("utf-8"))
    return {
        suite: tuple(
            _explanation(f"{file.name}: {suite}[{index}]", entry)
            for index, entry in enumerate(entries)
        )
        for suite, entries in document.items()
    }


def _explanation(where: str, entry: Mapping[str, object]) -> Explanation:
    tests, because = entry.get("tests"), entry.get("because")
    limitation = entry.get("limitation")
    if unknown := set(entry) - {"tests", "because", "limitation"}:
        raise BadExplanations(f"{where}: {sorted(unknown)[0]!r} is an unknown field")
    if not isinstance(tests, list) or not tests or not all(isinstance(t, str) for t in tests):
        raise BadExplanations(f"{where}: tests must be a list of names")
    if not isinstance(because, str) or not because.strip():
        raise BadExplanations(f"{where}: because must say why")
    if limitation is not None and not isinstance(limitation, str):
        raise BadExplanations(f"{where}: limitation must be an ID of docs/limitations.md")
    return Explanation(tuple(tests), " ".join(because.split()), limitation)


def explanations_of(test: str, explanations: Sequence[Explanation]) -> list[Explanation]:
    """The explanations that name the test."""
    return [explanation for explanation in explanations if test in explanation.tests]


def needless(comparisons: Sequence[Comparison], explanations: Sequence[Explanation]) -> list[str]:
    """Tests that have an explanation but need none."""
    fine = {c.test for c in comparisons if c.as_native and c.sandbox.verdict is not Verdict.FAIL}
    return sorted({test for entry in explanations for test in entry.tests} & fine)
