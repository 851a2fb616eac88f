"""Running all tests of a suite on both sides.

Owns the order, the workers and the kept outcomes. Rules: an outcome is kept under a key
of everything that decided it, and used again only under the same key; a test that fails,
on whichever side, is run once more when nothing else runs, because suites hold races and
short time-outs; every outcome is kept as it comes, so that a run that was interrupted goes
on where it was, second tries included; a test that makes the harness itself fail is a failed
test with the reason, never a lost one.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from conformance.suite import SIDES, Comparison, Outcome, Side, Suite, Verdict

Observer = Callable[[str, Side, Outcome, bool], None]
"""Told of each outcome as it comes: test, side, outcome, whether it was kept from before."""


class KeptOutcomes:
    """Outcomes on disk, by suite, side, key and test."""

    def __init__(self, root: Path, suite: Suite) -> None:
        self._folders = {
            side: root / suite.name / f"{side}-{_digest(suite.key(side))}" for side in SIDES
        }

    def find(self, test: str, side: Side) -> Outcome | None:
        """What was kept, or None."""
        try:
            facts = json.loads((self._folders[side] / f"{test}.json").read_text("utf-8"))
            return Outcome(
                Verdict(facts["verdict"]),
                facts["detail"],
                facts["seconds"],
                facts["tries"],
                {name: Verdict(verdict) for name, verdict in facts["cases"].items()},
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def keep(self, test: str, side: Side, outcome: Outcome) -> None:
        """Written under another name first, so that a reader never sees half a file."""
        path = self._folders[side] / f"{test}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = {
            "verdict": outcome.verdict.value,
            "detail": outcome.detail,
            "seconds": round(outcome.seconds, 3),
            "tries": outcome.tries,
            "cases": dict(outcome.cases),
        }
        fresh = path.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        fresh.replace(path)


def run_suite(
    suite: Suite,
    tests: Sequence[str],
    kept: KeptOutcomes,
    *,
    workers: int,
    fresh: frozenset[Side],
    observe: Observer,
) -> list[Comparison]:
    """Both sides of all `tests`; sides in `fresh` are run even if an outcome is kept."""
    outcomes: dict[tuple[str, Side], Outcome] = {}
    failed: list[tuple[str, Side]] = []

    def note(test: str, side: Side, outcome: Outcome) -> None:
        outcomes[test, side] = outcome
        kept.keep(test, side, outcome)
        observe(test, side, outcome, False)

    def first_try(test: str, side: Side, outcome: Outcome) -> None:
        if outcome.verdict is Verdict.FAIL:
            kept.keep(test, side, outcome)
            failed.append((test, side))
        else:
            note(test, side, outcome)

    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[Outcome], tuple[str, Side]] = {}
        try:
            for test in tests:
                for side in SIDES:
                    found = None if side in fresh else kept.find(test, side)
                    if found is None:
                        running[pool.submit(_run, suite, test, side)] = (test, side)
                    elif found.verdict is Verdict.FAIL and found.tries == 1:
                        failed.append((test, side))
                    else:
                        outcomes[test, side] = found
                        observe(test, side, found, True)
            for future in as_completed(running):
                first_try(*running[future], future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for test, side in failed:
        note(test, side, replace(_run(suite, test, side), tries=2))
    return [Comparison(test, outcomes[test, "native"], outcomes[test, "sandbox"]) for test in tests]


def _run(suite: Suite, test: str, side: Side) -> Outcome:
    began = time.monotonic()
    try:
        return suite.run(test, side)
    except Exception:
        detail = f"the harness failed\n{traceback.format_exc()}"
        return Outcome(Verdict.FAIL, detail, time.monotonic() - began)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
