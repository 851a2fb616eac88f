"""What a test suite is, for the runner and the report.

Owns `Suite`, `Outcome` and the rule by which two outcomes are compared. Nothing here depends on a
particular program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

Side = Literal["native", "sandbox"]
SIDES: tuple[Side, ...] = ("native", "sandbox")

DETAIL_MAX = 20_000
"""How many characters of a difference are kept: enough to explain it."""


class Verdict(StrEnum):
    """The verdict of a suite on one test."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test on one side."""

    verdict: Verdict
    detail: str
    """Why the test did not pass: the difference from the expected output, or a time-out."""
    seconds: float
    tries: int = 1
    """How often the test ran until it passed or was given up."""
    cases: Mapping[str, Verdict] = field(default_factory=dict)
    """The verdict of each case, by name, if the test has cases."""

    def __post_init__(self) -> None:
        if len(self.detail) > DETAIL_MAX:
            cut = self.detail[:DETAIL_MAX] + "\n... (cut)\n"
            object.__setattr__(self, "detail", cut)


@dataclass(frozen=True)
class Comparison:
    """The outcomes of one test on both sides."""

    test: str
    native: Outcome
    sandbox: Outcome
    image: str = field(default="", compare=False)
    """The sandbox's image: the first digits of the key of its outcome."""

    @property
    def as_native(self) -> bool:
        """Whether the sandbox does as well as the native program, or better, in every case."""
        return not self.differing()

    def differing(self) -> dict[str, Verdict]:
        """The sandbox's verdicts in the cases in which it does worse, by name of the case."""
        return {
            name: sandbox
            for name, (native, sandbox) in self.cases().items()
            if sandbox not in (Verdict.PASS, native)
        }

    def failing_on_both_sides(self) -> list[str]:
        """The names of cases that fail natively and in the sandbox."""
        both = (Verdict.FAIL, Verdict.FAIL)
        return [name for name, verdicts in self.cases().items() if verdicts == both]

    def verdicts(self) -> Iterator[tuple[Verdict, Verdict]]:
        """Native and sandbox, for each case."""
        yield from self.cases().values()

    def cases(self) -> dict[str, tuple[Verdict, Verdict]]:
        """Native and sandbox by name of the case; a test without cases is one without a name."""
        if not self.native.cases and not self.sandbox.cases:
            return {"": (self.native.verdict, self.sandbox.verdict)}
        # A script that ends early fails its remaining cases.
        return {
            name: (
                self.native.cases.get(name, Verdict.FAIL),
                self.sandbox.cases.get(name, Verdict.FAIL),
            )
            for name in {**self.native.cases, **self.sandbox.cases}
        }


class Suite(Protocol):
    """A program's own test suite."""

    name: str
    """Short name, for the command line: bash."""
    title: str
    """Name and version, for display: GNU bash 5.3."""
    patience: float
    """The factor by which time limits are longer, for a busy machine."""

    def prepare(self) -> None:
        """Build what the tests need; slow the first time, cached afterwards."""

    def tests(self) -> Sequence[str]:
        """The names of all tests, in the suite's own order."""

    def key(self, side: Side) -> str:
        """A key that changes when anything that decides this side's outcomes changes."""

    def run(self, test: str, side: Side) -> Outcome:
        """Run one test on one side, apart from all others; called from several threads."""
