"""The tables of `docs/conformance.md`.

Owns the text between a suite's two markers, and nothing else of that file. Rule: the
text depends on the outcomes and the explanations alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.explanations import Explanation, explanations_of
from conformance.suite import Comparison, Outcome, Suite, Verdict

_MARKS = {Verdict.PASS: "pass", Verdict.FAIL: "**fail**", Verdict.SKIP: "skip"}


def update(document: Path, suite: Suite, text: str) -> None:
    """Put `text` between the suite's markers."""
    begin, end = (f"<!-- {suite.name}: {edge} -->" for edge in ("begin", "end"))
    old = document.read_text("utf-8")
    head, found_begin, rest = old.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{document} has no lines {begin} and {end}")
    document.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def suite_text(
    suite: Suite, comparisons: Sequence[Comparison], explanations: Sequence[Explanation]
) -> str:
    """Summary, differences with their causes, and the whole table."""
    parts = [_summary(suite, comparisons)]
    different = [comparison for comparison in comparisons if not comparison.as_native]
    if different:
        parts.append("### Differences and why\n")
        parts.append(_differences(different, explanations))
    both = [c for c in comparisons if c.native.verdict is c.sandbox.verdict is Verdict.FAIL]
    if both:
        parts.append("### Fail natively as well\n")
        parts.append(_failures_on_both_sides(both, explanations))
    parts.append("### All tests\n")
    parts.append(_table(comparisons))
    return "\n\n".join(part.strip() for part in parts)


def _summary(suite: Suite, comparisons: Sequence[Comparison]) -> str:
    alike = sum(comparison.as_native for comparison in comparisons)
    rows = []
    for side in ("native", "sandbox"):
        outcomes = [getattr(comparison, side) for comparison in comparisons]
        counts = [sum(o.verdict is verdict for o in outcomes) for verdict in Verdict]
        seconds = sum(outcome.seconds for outcome in outcomes)
        rows.append(f"| {side} | {' | '.join(map(str, counts))} | {seconds:.0f} |")
    passed = [c.sandbox.verdict for c in comparisons if c.native.verdict is Verdict.PASS]
    return "\n".join(
        [
            f"{suite.title}: **{alike} of {len(comparisons)} as native**. Of {len(passed)} tests "
            f"that pass natively, {passed.count(Verdict.PASS)} pass in the sandbox "
            f"({passed.count(Verdict.PASS) / max(1, len(passed)):.1%}).",
            "",
            f"| side | {' | '.join(Verdict)} | seconds in all |",
            "|---|---:|---:|---:|---:|",
            *rows,
        ]
    )


def _differences(different: Sequence[Comparison], explanations: Sequence[Explanation]) -> str:
    lines = ["| test | limitation | why |", "|---|---|---|"]
    for comparison in different:
        found = explanations_of(comparison.test, explanations)
        limitations = ", ".join(entry.limitation for entry in found if entry.limitation) or "-"
        why = " ".join(_cell(entry.because) for entry in found) or "**unexplained**"
        lines.append(f"| {comparison.test} | {limitations} | {why} |")
    return "\n".join(lines)


def _failures_on_both_sides(both: Sequence[Comparison], explanations: Sequence[Explanation]) -> str:
    lines = ["| test | why |", "|---|---|"]
    for comparison in both:
        found = explanations_of(comparison.test, explanations)
        lines.append(f"| {comparison.test} | {' '.join(_cell(e.because) for e in found)} |")
    return "\n".join(lines)


def _table(comparisons: Sequence[Comparison]) -> str:
    lines = ["| test | native | sandbox | native s | sandbox s |", "|---|---|---|---:|---:|"]
    for comparison in comparisons:
        native, sandbox = comparison.native, comparison.sandbox
        lines.append(
            f"| {comparison.test} | {_verdict(native)} | {_verdict(sandbox)} "
            f"| {native.seconds:.1f} | {sandbox.seconds:.1f} |"
        )
    return "\n".join(lines)


def _verdict(outcome: Outcome) -> str:
    again = outcome.tries > 1 and outcome.verdict is Verdict.PASS
    return _MARKS[outcome.verdict] + (" (second try)" if again else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
