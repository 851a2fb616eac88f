"""The document: `docs/conformance.md`, and one table of all tests per suite beside it.

Owns the summary, the section of each suite between its two markers, and the tables in
`docs/conformance/`; the prose around them is written by hand. Rules: the text depends only on the
outcomes and the explanations; a suite that did not run keeps its text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.explanations import Explanation, explanations_of, unexplained
from conformance.suite import SIDES, Comparison, Outcome, Suite, Verdict

_MARKS = {Verdict.PASS: "pass", Verdict.FAIL: "**fail**", Verdict.SKIP: "skip"}
_SUMMARY = "summary"
_32_BIT = ("L035", "L090")
"""Limitations of a 32-bit machine; the goals of packages leave their cases apart."""
_TESTS_SHOWN = 6
_SUMMARY_HEAD = """\
| suite | tests | pass natively | of these in the sandbox | | as native | native s | sandbox s |
|---|---:|---:|---:|---:|---:|---:|---:|"""
_ROW = re.compile(r"^\| \[(?P<title>.+?)\]\(#(?P<name>[\w-]+)\) \|(?P<cells>.*)\|$", re.MULTILINE)


def update(
    document: Path,
    suite: Suite,
    comparisons: Sequence[Comparison],
    explanations: Sequence[Explanation],
) -> None:
    """Write the suite's outcomes: its row in the summary, its section and its table."""
    counts = Counts.of(comparisons)
    text = document.read_text("utf-8")
    text = _replaced(document, text, suite.name, section(suite, comparisons, explanations))
    old = _between(document, text, _SUMMARY)
    text = _replaced(document, text, _SUMMARY, summary(old, suite, counts))
    document.write_text(text, encoding="utf-8")
    tables = document.with_suffix("")
    tables.mkdir(exist_ok=True)
    (tables / f"{suite.name}.md").write_text(_all_tests(suite, comparisons), encoding="utf-8")


@dataclass(frozen=True)
class Counts:
    """The counts of a suite."""

    tests: int
    native_passes: int
    both_pass: int
    as_native: int
    native_seconds: int
    sandbox_seconds: int

    @classmethod
    def of(cls, comparisons: Sequence[Comparison]) -> Counts:
        """Count the tests, or the cases of those that have cases."""
        verdicts = [pair for comparison in comparisons for pair in comparison.verdicts()]
        passed = [sandbox for native, sandbox in verdicts if native is Verdict.PASS]
        return cls(
            len(verdicts),
            len(passed),
            passed.count(Verdict.PASS),
            sum(sandbox in (Verdict.PASS, native) for native, sandbox in verdicts),
            round(sum(c.native.seconds for c in comparisons)),
            round(sum(c.sandbox.seconds for c in comparisons)),
        )

    @property
    def share(self) -> str:
        """The share of natively passing tests that pass in the sandbox."""
        return f"{self.both_pass / max(1, self.native_passes):.1%}"

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.tests + other.tests,
            self.native_passes + other.native_passes,
            self.both_pass + other.both_pass,
            self.as_native + other.as_native,
            self.native_seconds + other.native_seconds,
            self.sandbox_seconds + other.sandbox_seconds,
        )

    def cells(self) -> str:
        """The cells of a row of the summary."""
        cells = (
            self.tests,
            self.native_passes,
            self.both_pass,
            self.share,
            self.as_native,
            self.native_seconds,
            self.sandbox_seconds,
        )
        return " | ".join(map(str, cells))


def summary(old: str, suite: Suite, counts: Counts) -> str:
    """The table of all suites, with this suite's row replaced."""
    rows: dict[str, tuple[str, Counts]] = {}
    for row in _ROW.finditer(old):
        cells = [cell.strip() for cell in row["cells"].split("|")]
        values = [int(cell) for index, cell in enumerate(cells) if index != 3]
        rows[row["name"]] = (row["title"], Counts(*values))
    rows[suite.name] = (suite.title, counts)
    lines = [
        f"| [{title}](#{name}) | {numbers.cells()} |"
        for name, (title, numbers) in sorted(rows.items())
    ]
    total = Counts(0, 0, 0, 0, 0, 0)
    for _, counted in rows.values():
        total += counted
    return "\n".join([_SUMMARY_HEAD, *lines, f"| all | {total.cells()} |"])


def section(
    suite: Suite, comparisons: Sequence[Comparison], explanations: Sequence[Explanation]
) -> str:
    """The section of a suite: counts, and differences with their causes."""
    counts = Counts.of(comparisons)
    parts = [
        f"{suite.title}: {counts.as_native} of {counts.tests} as native. Of "
        f"{counts.native_passes} tests that pass natively, {counts.both_pass} pass in the "
        f"sandbox (**{counts.share}**). [All tests](conformance/{suite.name}.md).",
        *_images(comparisons),
        _verdicts(comparisons),
    ]
    different = [c for c in comparisons if not c.as_native]
    if different:
        parts += [_by_limitation(different, explanations)]
        if apart := _apart(comparisons, explanations):
            parts += [apart]
        parts += ["Differences and their causes:", _causes(different, explanations)]
    both = [c for c in comparisons if c.native.verdict is c.sandbox.verdict is Verdict.FAIL]
    if whole := [c for c in both if not c.native.cases]:
        parts += ["Tests that fail on both sides:", _causes(whole, explanations, needed=False)]
    if some := {c.test: len(c.failing_on_both_sides()) for c in both if c.native.cases}:
        tests = ", ".join(f"{test} ({count})" for test, count in some.items() if count)
        parts += [f"Cases that fail on both sides: {tests or 'none'}."]
    return "\n\n".join(parts)


def _images(comparisons: Sequence[Comparison]) -> list[str]:
    """How many tests ran with each image, if that is known."""
    counts = Counter(comparison.image for comparison in comparisons if comparison.image)
    if not counts:
        return []
    named = ", ".join(f"`{image}` {count}" for image, count in counts.most_common())
    return [f"Tests by the sandbox's image: {named}."]


def _verdicts(comparisons: Sequence[Comparison]) -> str:
    lines = [f"| side | {' | '.join(Verdict)} |", "|---|---:|---:|---:|"]
    pairs = [pair for comparison in comparisons for pair in comparison.verdicts()]
    for index, side in enumerate(SIDES):
        verdicts = [pair[index] for pair in pairs]
        counts = [verdicts.count(verdict) for verdict in Verdict]
        lines.append(f"| {side} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def _by_limitation(different: Sequence[Comparison], explanations: Sequence[Explanation]) -> str:
    """How many tests or cases differ because of each limitation; one may count several times."""
    causes: Counter[str] = Counter()
    for comparison in different:
        by_cause: dict[str, set[str]] = {}
        for entry in explanations:
            cause = entry.limitation or "another cause"
            by_cause.setdefault(cause, set()).update(entry.explains(comparison))
        causes.update({cause: len(names) for cause, names in by_cause.items() if names})
    ranked = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    verdicts = [verdict for comparison in different for verdict in comparison.differing().values()]
    return (
        f"{len(verdicts)} differ, of which {verdicts.count(Verdict.FAIL)} fail in the sandbox and "
        f"{verdicts.count(Verdict.SKIP)} are skipped there. By limitation: "
        + (", ".join(f"{cause} {count}" for cause, count in ranked) or "none")
        + "."
    )


def _apart(comparisons: Sequence[Comparison], explanations: Sequence[Explanation]) -> str:
    """The share without the cases that differ because programs are 32-bit; empty if none does."""
    causes = [entry for entry in explanations if entry.limitation in _32_BIT and entry.cases]
    apart = passed = total = 0
    for comparison in comparisons:
        names = {name for entry in causes for name in entry.explains(comparison)}
        for name, (native, sandbox) in comparison.cases().items():
            if native is Verdict.PASS and name in names:
                apart += 1
            elif native is Verdict.PASS:
                total += 1
                passed += sandbox is Verdict.PASS
    if not apart:
        return ""
    return (
        f"Apart from {apart} cases that differ because programs are 32-bit "
        f"({', '.join(_32_BIT)}), {passed} of {total} pass (**{passed / max(1, total):.2%}**)."
    )


def _causes(
    comparisons: Sequence[Comparison], explanations: Sequence[Explanation], *, needed: bool = True
) -> str:
    """One row per cause, with the tests that it explains; then the tests without a cause."""
    lines = ["| tests | limitation | cause |", "|---|---|---|"]
    names = [comparison.test for comparison in comparisons]
    for entry in explanations:
        concerned = [name for name in names if name in entry.tests]
        if entry.cases:
            concerned += _counted(comparisons, entry)
        if concerned:
            why = entry.because.replace("|", "\\|")
            lines.append(f"| {', '.join(concerned)} | {entry.limitation or '-'} | {why} |")
    for comparison in comparisons:
        open_cases = unexplained(comparison, explanations)
        if needed and open_cases:
            count = f" ({len(open_cases)})" if comparison.native.cases else ""
            lines.append(f"| {comparison.test}{count} | - | **unexplained** |")
        elif not needed and not explanations_of(comparison.test, explanations):
            lines.append(f"| {comparison.test} | - |  |")
    return "\n".join(lines)


def _counted(comparisons: Sequence[Comparison], entry: Explanation) -> list[str]:
    """The tests with cases that an entry explains, and how many; the first ones if many."""
    counts = {c.test: len(entry.explains(c)) for c in comparisons if c.test not in entry.tests}
    named = [f"{test} ({count})" for test, count in counts.items() if count]
    if len(named) <= _TESTS_SHOWN:
        return named
    rest = sum(list(filter(None, counts.values()))[_TESTS_SHOWN:])
    return [*named[:_TESTS_SHOWN], f"{len(named) - _TESTS_SHOWN} more files ({rest})"]


def _all_tests(suite: Suite, comparisons: Sequence[Comparison]) -> str:
    lines = [
        f"# {suite.title}: all tests",
        "",
        "Written by `make conformance`; see [conformance.md](../conformance.md).",
        "",
        "| test | native | sandbox | native s | sandbox s | image |",
        "|---|---|---|---:|---:|---|",
    ]
    for comparison in comparisons:
        native, sandbox = comparison.native, comparison.sandbox
        lines.append(
            f"| {comparison.test} | {_verdict(native)} | {_verdict(sandbox)} "
            f"| {native.seconds:.1f} | {sandbox.seconds:.1f} | {comparison.image or '-'} |"
        )
    return "\n".join(lines) + "\n"


def _verdict(outcome: Outcome) -> str:
    again = outcome.tries > 1 and outcome.verdict is Verdict.PASS
    mark = _MARKS[outcome.verdict] + (" (second try)" if again else "")
    verdicts = list(outcome.cases.values())
    return f"{mark} {verdicts.count(Verdict.PASS)}/{len(verdicts)}" if verdicts else mark


# The text between two markers.


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def _between(document: Path, text: str, name: str) -> str:
    begin, end = _markers(name)
    _, found_begin, rest = text.partition(begin)
    inner, found_end, _ = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{document} has no lines {begin} and {end}")
    return inner


def _replaced(document: Path, text: str, name: str, new: str) -> str:
    inner = _between(document, text, name)
    begin, _ = _markers(name)
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n\n{new.strip()}\n\n{rest[len(inner) :]}"
