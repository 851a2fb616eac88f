"""Why a test differs from native: the committed file `explanations.toml`.

Owns the format: for each suite an array of tables with `tests` or `cases`, `because`, and, if the
cause is a known limitation, its ID in `docs/limitations.md`. `cases` are patterns `TEST::CASE` with
`*` for any text, for suites whose tests have many cases; with `absent = true` they name only cases
that the sandbox does not have, although it ran the test to its end. Rules: an explanation names
tests that differ, or that fail on both sides; an explanation that is no longer needed is reported,
so that the file stays true.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.suite import Comparison, Outcome, Verdict

FILE = Path(__file__).with_name("explanations.toml")


@dataclass(frozen=True)
class Explanation:
    """One cause, and the tests or cases that differ because of it."""

    tests: tuple[str, ...]
    because: str
    limitation: str | None
    cases: tuple[str, ...] = ()
    absent: bool = False

    def explains(self, comparison: Comparison) -> list[str]:
        """The differing cases of a test that this entry explains."""
        differing = list(comparison.differing())
        if comparison.test in self.tests:
            return differing
        if self.absent:
            # A test that ended early lacks cases too.
            if not _reached_its_end(comparison.sandbox):
                return []
            differing = [name for name in differing if name not in comparison.sandbox.cases]
        return [name for name in differing if self._names(comparison.test, name)]

    def _names(self, test: str, case: str) -> bool:
        return any(matches(pattern, test, case) for pattern in self.cases)


def _reached_its_end(outcome: Outcome) -> bool:
    return outcome.verdict is not Verdict.FAIL or Verdict.FAIL in outcome.cases.values()


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def matches(pattern: str, test: str, case: str) -> bool:
    """Whether a pattern of `cases` names this case."""
    return _pattern(pattern).fullmatch(f"{test}::{case}") is not None


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
    because, limitation = entry.get("because"), entry.get("limitation")
    if unknown := set(entry) - {"tests", "cases", "absent", "because", "limitation"}:
        raise BadExplanations(f"{where}: {sorted(unknown)[0]!r} is an unknown field")
    tests, cases = (_names(where, entry, field) for field in ("tests", "cases"))
    if not tests and not cases:
        raise BadExplanations(f"{where}: tests must be a list of names, or cases of patterns")
    if bad := [pattern for pattern in cases if "::" not in pattern]:
        raise BadExplanations(f"{where}: cases must be patterns TEST::CASE, not {bad[0]!r}")
    if not isinstance(because, str) or not because.strip():
        raise BadExplanations(f"{where}: because must say why")
    if limitation is not None and not isinstance(limitation, str):
        raise BadExplanations(f"{where}: limitation must be an ID of docs/limitations.md")
    absent = entry.get("absent", False)
    if not isinstance(absent, bool):
        raise BadExplanations(f"{where}: absent must be true or false")
    return Explanation(tests, " ".join(because.split()), limitation, cases, absent)


def _names(where: str, entry: Mapping[str, object], field: str) -> tuple[str, ...]:
    names = entry.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadExplanations(f"{where}: {field} must be a list of names")
    return tuple(names)


def explanations_of(test: str, explanations: Sequence[Explanation]) -> list[Explanation]:
    """The explanations that name the whole test."""
    return [explanation for explanation in explanations if test in explanation.tests]


def unexplained(comparison: Comparison, explanations: Sequence[Explanation]) -> list[str]:
    """The differing cases that no explanation names."""
    explained = {name for entry in explanations for name in entry.explains(comparison)}
    return [name for name in comparison.differing() if name not in explained]


def needless(comparisons: Sequence[Comparison], explanations: Sequence[Explanation]) -> list[str]:
    """Tests that have an explanation but need none, and patterns that no differing case needs."""
    fine = {c.test for c in comparisons if c.as_native and c.sandbox.verdict is not Verdict.FAIL}
    names = sorted({test for entry in explanations for test in entry.tests} & fine)
    differing = [(c.test, case) for c in comparisons for case in c.differing()]
    unused = {
        pattern
        for entry in explanations
        for pattern in entry.cases
        if not any(matches(pattern, test, case) for test, case in differing)
    }
    return names + sorted(pattern for pattern in unused if _ran(pattern, comparisons))


def _ran(pattern: str, comparisons: Sequence[Comparison]) -> bool:
    """Whether the tests that a pattern names are among those that ran."""
    test = _pattern(pattern.partition("::")[0])
    return any(test.fullmatch(comparison.test) for comparison in comparisons)
