"""The cases: what the benchmark measures.

Rules: a cost inside the shell (a fork, one turn of a loop) is the difference between a
script with 2N repetitions and one with N, so that starting bash cancels out; the
measured script is the same on both sides.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bench.packages import package_cases
from bench.programs import program_cases
from bench.python import python_cases
from bench.sides import SandboxSide, Side
from wasmsand import Sandbox

SORT_LINES = 1_000_000
HASHED_BYTES = 100_000_000
LISTED_FILES = 10_000


class Case(Protocol):
    """One row of the table."""

    @property
    def name(self) -> str:
        """The name that the table shows."""

    @property
    def rounds(self) -> int:
        """How often each side is measured."""

    def prepare(self, side: Side) -> None:
        """Write the files that the case needs; not timed."""

    def measure(self, side: Side) -> float | None:
        """Seconds on this side; None if the case does not exist there."""


@dataclass(frozen=True, slots=True)
class Creation:
    """`Sandbox()` and `kill()`."""

    name: str = "create a sandbox"
    rounds: int = 51

    def prepare(self, side: Side) -> None:
        pass

    def measure(self, side: Side) -> float | None:
        if not isinstance(side, SandboxSide):
            return None
        start = time.perf_counter()
        sandbox = Sandbox()
        seconds = time.perf_counter() - start
        sandbox.kill()
        return seconds


@dataclass(frozen=True, slots=True)
class WholeCommand:
    """A whole command: from the call until its output is collected, with the start of bash."""

    name: str
    script: str
    rounds: int
    setup: Callable[[Side], None] | None = None

    def prepare(self, side: Side) -> None:
        if self.setup is not None:
            self.setup(side)

    def measure(self, side: Side) -> float | None:
        return side.run(self.script)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A statement in a bash loop; the table shows the time of `shown` repetitions."""

    name: str
    body: str
    count: int
    rounds: int
    shown: int = 1
    redirect: str = ""

    def prepare(self, side: Side) -> None:
        side.run(self._script(1))

    def measure(self, side: Side) -> float | None:
        once = side.run(self._script(self.count))
        twice = side.run(self._script(2 * self.count))
        return max(twice - once, 0.0) / self.count * self.shown

    def _script(self, count: int) -> str:
        return f"for ((i = 0; i < {count}; i++)); do {self.body}; done {self.redirect}"


def _write_lines(side: Side) -> None:
    numbers = random.Random(1)
    lines = (f"{numbers.randrange(10**9)}\n" for _ in range(SORT_LINES))
    side.write("lines", "".join(lines).encode())


def _write_bulk(side: Side) -> None:
    side.write("bulk", random.Random(2).randbytes(HASHED_BYTES))


def _write_tree(side: Side) -> None:
    for index in range(LISTED_FILES):
        side.write(f"tree/{index // 100:03}/file{index:05}", b"x" * (index % 50))


def all_cases(*, quick: bool) -> list[Case]:
    """Every case; `quick` takes fewer measurements."""
    few, many = (3, 11) if quick else (11, 51)
    bulk = 1 if quick else 5
    return [
        Creation(rounds=many),
        WholeCommand("bash -c 'echo hi'", "echo hi", many),
        Repeated("( : )", "( : )", 100, few),
        Repeated("$(echo a)", "x=$(echo a)", 100, few),
        Repeated("fork and exec /bin/true", "/bin/true", 100, few),
        Repeated("pipeline of 3 programs", "echo a | tr a b | cat", 40, few, redirect="> out"),
        Repeated("10,000 loop turns", ":", 10_000, few, shown=10_000),
        Repeated("10,000 echoes to a file", "echo $i", 10_000, few, shown=10_000, redirect="> out"),
        WholeCommand("while read, 20,000 lines", "seq 20000 | while read x; do :; done", few),
        WholeCommand(
            "while read, 5,000 longer lines",
            "seq -f 'a line of some forty characters %g' 5000 | while read -r x; do :; done",
            few,
        ),
        WholeCommand(
            "while read, a file of 20,000 lines",
            "seq 20000 > numbers; while read x; do :; done < numbers",
            few,
        ),
        WholeCommand("mapfile of 20,000 lines", "seq 20000 | mapfile lines", few),
        # One thread on both sides, because the sandbox's sort has only one.
        WholeCommand(
            "sort 1M lines (1 thread)", "sort --parallel=1 lines > sorted", bulk, _write_lines
        ),
        WholeCommand("sha256sum of 100 MB", "sha256sum bulk", bulk, _write_bulk),
        WholeCommand("ls -lR of 10,000 files", "ls -lR tree > listing", bulk, _write_tree),
        *program_cases(bulk),
        *python_cases(few, bulk),
        *package_cases(1 if quick else 3),
    ]
