"""Running all tests of a suite on both sides.

Owns the order, the workers and the kept outcomes. Rules: an outcome is kept under a key of
everything that decided it, and a run reuses it only under the same key; a report can also have
outcomes of earlier images, which are marked with their keys; a test that fails, on either side,
runs a second time when nothing else runs, because suites contain races and short time-outs, unless
the suite has already done so; every outcome is kept at once, so that an interrupted run continues
where it was, second tries included; if the harness itself fails on a test, the test fails with that
reason.
"""

from __future__ import annotations

import glob
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
"""Called with each outcome: test, side, outcome, and whether it was kept from an earlier run."""


class KeptOutcomes:
    """Outcomes on disk, by suite, side, key and test."""

    def __init__(self, root: Path, suite: Suite) -> None:
        self._root = root / suite.name
        self._folders = {side: self._root / f"{side}-{_digest(suite.key(side))}" for side in SIDES}

    @property
    def image(self) -> str:
        """The first digits of the key of the sandbox's side."""
        return _image(self._folders["sandbox"])

    def find(self, test: str, side: Side) -> Outcome | None:
        """The kept outcome, or None."""
        return self._read(self._folders[side], test)

    def find_latest(self, test: str, side: Side) -> tuple[Outcome, str] | None:
        """The outcome under this key, or the last one under another, and its image."""
        files = self._root.glob(f"{side}-*/{glob.escape(test)}.json")
        others = sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)
        folders = [self._root / file.relative_to(self._root).parts[0] for file in others]
        for folder in (self._folders[side], *folders):
            found = self._read(folder, test)
            if found is not None and _settled(found):
                return found, _image(folder)
        return None

    @staticmethod
    def _read(folder: Path, test: str) -> Outcome | None:
        try:
            facts = json.loads((folder / f"{test}.json").read_text("utf-8"))
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
        """Keep an outcome; it is written under another name first, so nobody reads half a file."""
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
    """Run `tests` on both sides; sides in `fresh` run even if an outcome is kept."""
    outcomes: dict[tuple[str, Side], Outcome] = {}
    failed: list[tuple[str, Side]] = []

    def note(test: str, side: Side, outcome: Outcome) -> None:
        outcomes[test, side] = outcome
        kept.keep(test, side, outcome)
        observe(test, side, outcome, False)

    def first_try(test: str, side: Side, outcome: Outcome) -> None:
        if not _settled(outcome):
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
                    elif not _settled(found):
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
    return [
        Comparison(test, outcomes[test, "native"], outcomes[test, "sandbox"], kept.image)
        for test in tests
    ]


def kept_comparisons(
    tests: Sequence[str], kept: KeptOutcomes, *, earlier: bool = False
) -> list[Comparison]:
    """The tests of which both outcomes are kept, and need no second try; with `earlier`, outcomes
    of other images stand in for those that are missing."""
    if earlier:
        latest = {test: [kept.find_latest(test, side) for side in SIDES] for test in tests}
        return [
            Comparison(test, native[0], sandbox[0], sandbox[1])
            for test, (native, sandbox) in latest.items()
            if native is not None and sandbox is not None
        ]
    found = {test: [kept.find(test, side) for side in SIDES] for test in tests}
    return [
        Comparison(test, native, sandbox, kept.image)
        for test, (native, sandbox) in found.items()
        if native is not None and sandbox is not None and _settled(native) and _settled(sandbox)
    ]


def _image(folder: Path) -> str:
    return folder.name.partition("-")[2][:8]


def _settled(outcome: Outcome) -> bool:
    return outcome.verdict is not Verdict.FAIL or outcome.tries > 1


def _run(suite: Suite, test: str, side: Side) -> Outcome:
    began = time.monotonic()
    try:
        return suite.run(test, side)
    except Exception:
        detail = f"the harness failed\n{traceback.format_exc()}"
        return Outcome(Verdict.FAIL, detail, time.monotonic() - began)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
