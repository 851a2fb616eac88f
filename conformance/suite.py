"""What a test suite is, for the runner and the report.

Owns `Suite`, `Outcome` and the rule by which two outcomes are compared. Nothing here
knows a particular program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

Side = Literal["native", "sandbox"]
SIDES: tuple[Side, ...] = ("native", "sandbox")

DETAIL_MAX = 20_000
"""Characters of a difference that are kept: enough to explain it."""


class Verdict(StrEnum):
    """What a suite says of one test."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True)
class Outcome:
    """One test on one side."""

    verdict: Verdict
    detail: str
    """Why it did not pass: the difference from what the suite expects, or a time-out."""
    seconds: float
    tries: int = 1
    """How often it was run until it passed or was given up."""
    cases: Mapping[str, Verdict] = field(default_factory=dict)
    """The verdicts within, by name, of a test that consists of many."""

    def __post_init__(self) -> None:
        if len(self.detail) > DETAIL_MAX:
            cut = self.detail[:DETAIL_MAX] + "\n... (cut)\n"
            object.__setattr__(self, "detail", cut)


@dataclass(frozen=True)
class Comparison:
    """One test on both sides."""

    test: str
    native: Outcome
    sandbox: Outcome

    @property
    def as_native(self) -> bool:
        """The sandbox does as well as the native program, or better: in every case."""
        return not self.differences()

    def differences(self) -> list[Verdict]:
        """The sandbox's verdict in those cases in which it does worse."""
        return [
            sandbox for native, sandbox in self.verdicts() if sandbox not in (Verdict.PASS, native)
        ]

    def verdicts(self) -> Iterator[tuple[Verdict, Verdict]]:
        """Native and sandbox, for each case; a test without cases is one case."""
        if not self.native.cases and not self.sandbox.cases:
            yield self.native.verdict, self.sandbox.verdict
            return
        # A script that ends early has not passed the rest.
        for name in {**self.native.cases, **self.sandbox.cases}:
            yield (
                self.native.cases.get(name, Verdict.FAIL),
                self.sandbox.cases.get(name, Verdict.FAIL),
            )


class Suite(Protocol):
    """A program's own test suite."""

    name: str
    """Short name, for the command line: bash."""
    title: str
    """For people: GNU bash 5.3."""
    patience: float
    """Time limits are this many times as long, on a machine that has other things to do."""

    def prepare(self) -> None:
        """Build what the tests need; slow at first, cached after."""

    def tests(self) -> Sequence[str]:
        """The names of all tests, in the suite's own order."""

    def key(self, side: Side) -> str:
        """Changes when anything that decides the outcomes of this side changes."""

    def run(self, test: str, side: Side) -> Outcome:
        """Run one test on one side, apart from all others; called from several threads."""
