"""Running a suite on both sides: order, second tries, kept outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.runner import KeptOutcomes, kept_comparisons, run_suite
from conformance.suite import SIDES, Comparison, Outcome, Side, Verdict

pytestmark = pytest.mark.no_userland

PASS = Outcome(Verdict.PASS, "", 0.1)
FAIL = Outcome(Verdict.FAIL, "-a\n+b\n", 0.1)


class ScriptedSuite:
    """A suite whose outcomes are given; None is an error of the harness."""

    name = "scripted"
    title = "Scripted"
    patience = 1.0

    def __init__(self, outcomes: dict[tuple[str, Side], list[Outcome | None]]) -> None:
        self.outcomes = outcomes
        self.version = "1"
        self.runs: list[tuple[str, Side]] = []

    def prepare(self) -> None:
        pass

    def tests(self) -> Sequence[str]:
        return list(dict.fromkeys(test for test, _ in self.outcomes))

    def key(self, side: Side) -> str:
        return self.version

    def run(self, test: str, side: Side) -> Outcome:
        self.runs.append((test, side))
        outcome = self.outcomes[test, side].pop(0)
        if outcome is None:
            raise RuntimeError("no such luck")
        return outcome


def run(
    suite: ScriptedSuite, folder: Path, fresh: frozenset[Side] = frozenset()
) -> list[Comparison]:
    return run_suite(
        suite,
        suite.tests(),
        KeptOutcomes(folder, suite),
        workers=2,
        fresh=fresh,
        observe=lambda *_: None,
    )


def test_both_sides_of_every_test_are_run_in_the_suite_s_order(tmp_path: Path) -> None:
    suite = ScriptedSuite({(test, side): [PASS] for test in ("b", "a") for side in SIDES})
    comparisons = run(suite, tmp_path)
    assert [comparison.test for comparison in comparisons] == ["b", "a"]
    assert all(comparison.as_native for comparison in comparisons)


def test_a_failure_gets_a_second_try_and_says_so(tmp_path: Path) -> None:
    suite = ScriptedSuite({("a", "native"): [PASS], ("a", "sandbox"): [FAIL, PASS]})
    (comparison,) = run(suite, tmp_path)
    assert comparison.sandbox.verdict is Verdict.PASS
    assert comparison.sandbox.tries == 2


def test_two_failures_are_a_failure(tmp_path: Path) -> None:
    suite = ScriptedSuite({("a", "native"): [PASS], ("a", "sandbox"): [FAIL, FAIL]})
    (comparison,) = run(suite, tmp_path)
    assert not comparison.as_native
    assert comparison.sandbox.detail == FAIL.detail


def test_an_error_of_the_harness_is_a_failed_test(tmp_path: Path) -> None:
    suite = ScriptedSuite({("a", "native"): [PASS], ("a", "sandbox"): [None, None]})
    (comparison,) = run(suite, tmp_path)
    assert comparison.sandbox.verdict is Verdict.FAIL
    assert "no such luck" in comparison.sandbox.detail


def test_outcomes_are_kept_while_the_key_stays(tmp_path: Path) -> None:
    suite = ScriptedSuite({("a", side): [PASS, PASS, PASS] for side in SIDES})
    first = run(suite, tmp_path)
    assert run(suite, tmp_path) == first
    assert sorted(suite.runs) == [("a", "native"), ("a", "sandbox")]
    suite.version = "2"
    run(suite, tmp_path)
    assert len(suite.runs) == 4


def test_an_interrupted_run_continues_with_the_second_tries(tmp_path: Path) -> None:
    class Interrupted(ScriptedSuite):
        def run(self, test: str, side: Side) -> Outcome:
            if len(self.runs) == 2:
                raise KeyboardInterrupt
            return super().run(test, side)

    with pytest.raises(KeyboardInterrupt):
        run(Interrupted({("a", "native"): [PASS], ("a", "sandbox"): [FAIL]}), tmp_path)
    suite = ScriptedSuite({("a", "native"): [], ("a", "sandbox"): [PASS]})
    (comparison,) = run(suite, tmp_path)
    assert suite.runs == [("a", "sandbox")]
    assert comparison.sandbox.tries == 2


def test_a_side_can_be_run_again(tmp_path: Path) -> None:
    suite = ScriptedSuite({("a", side): [PASS, PASS] for side in SIDES})
    run(suite, tmp_path)
    run(suite, tmp_path, frozenset({"sandbox"}))
    assert suite.runs.count(("a", "sandbox")) == 2
    assert suite.runs.count(("a", "native")) == 1


def test_as_native_is_the_same_verdict_or_better() -> None:
    assert Comparison("a", FAIL, PASS).as_native
    assert Comparison("a", FAIL, FAIL).as_native
    assert not Comparison("a", PASS, FAIL).as_native
    skip = Outcome(Verdict.SKIP, "", 0.1)
    assert Comparison("a", skip, skip).as_native
    assert not Comparison("a", PASS, skip).as_native


def test_a_long_difference_is_cut() -> None:
    assert Outcome(Verdict.FAIL, "x" * 100_000, 0.1).detail.endswith("... (cut)\n")


def test_a_suite_that_repeats_failures_itself_is_not_run_again(tmp_path: Path) -> None:
    twice = Outcome(Verdict.FAIL, "-a\n+b\n", 0.1, tries=2)
    suite = ScriptedSuite({("a", "native"): [PASS], ("a", "sandbox"): [twice]})
    (comparison,) = run(suite, tmp_path)
    assert comparison.sandbox == twice
    assert run(suite, tmp_path) == [comparison]


def test_only_outcomes_that_are_final_on_both_sides_are_taken_without_a_run(tmp_path: Path) -> None:
    suite = ScriptedSuite({("a", side): [PASS] for side in SIDES})
    run(suite, tmp_path)
    kept = KeptOutcomes(tmp_path, suite)
    kept.keep("b", "native", PASS)
    kept.keep("c", "native", PASS)
    kept.keep("c", "sandbox", FAIL)
    comparisons = kept_comparisons(["a", "b", "c"], kept)
    assert [(each.test, each.as_native) for each in comparisons] == [("a", True)]


def test_outcomes_of_earlier_images_stand_in_on_request_and_are_marked(tmp_path: Path) -> None:
    suite = ScriptedSuite({})
    before = KeptOutcomes(tmp_path, suite)
    for side in SIDES:
        before.keep("a", side, PASS)
        before.keep("b", side, PASS)
    suite.version = "2"
    now = KeptOutcomes(tmp_path, suite)
    now.keep("a", "sandbox", Outcome(Verdict.FAIL, "", 0.1, tries=2))
    assert kept_comparisons(["a", "b"], now) == []
    comparisons = kept_comparisons(["a", "b", "c"], now, earlier=True)
    found = [(each.test, each.as_native, each.image) for each in comparisons]
    assert found == [("a", False, now.image), ("b", True, before.image)]
    assert now.image != before.image
