"""numpy and pandas in the sandbox, and natively with the wheels of the same versions.

Owns these cases and the two sides that they run on. Rules: a kernel of `package_kernels.py`
measures itself, so neither the start of the interpreter nor the imports count; it always measures
CPU time; the native side has one thread, as the sandbox has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.package_kernels import KERNELS
from bench.sides import NativeSide, SandboxSide, ScriptFailed, Side
from conformance.supplies import Supplies
from conformance.wheels import native_packages

PACKAGES = ("numpy", "pandas")
_KERNELS = Path(__file__).with_name("package_kernels.py")
_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class PackageRun:
    """A kernel that uses packages; the table shows the fastest time of each run."""

    name: str
    rounds: int
    needs: str = "python-full"
    """The recipe that builds the interpreter."""

    def prepare(self, side: Side) -> None:
        side.write(_KERNELS.name, _KERNELS.read_bytes())

    def measure(self, side: Side) -> float | None:
        return self._run(side)[0]

    def check(self, sides: tuple[Side, ...]) -> None:
        """Raise `ScriptFailed` unless all sides compute the same."""
        results = [self._run(side)[1] for side in sides]
        if not all(math.isclose(result, results[0], rel_tol=_TOLERANCE) for result in results):
            raise ScriptFailed(f"{self.name}: the results differ: {results}")

    def _run(self, side: Side) -> tuple[float, float]:
        printed = side.output(("python3", _KERNELS.name, self.name))
        try:
            seconds, result = map(float, printed.split())
        except ValueError:
            raise ScriptFailed(f"{self.name} failed ({side.name}): {printed[:500]!r}") from None
        return seconds, result


def package_cases(rounds: int) -> list[PackageRun]:
    """Every kernel, measured `rounds` times."""
    return [PackageRun(name, rounds) for name in KERNELS]


@contextmanager
def package_sides(say: Callable[[str], None]) -> Iterator[tuple[SandboxSide, NativeSide]]:
    """A sandbox with the packages installed, and native Python with their wheels."""
    native = native_packages(Supplies(say))
    variables = {**native.variables, "OPENBLAS_NUM_THREADS": "1"}
    with (
        SandboxSide(packages=PACKAGES) as sandbox,
        NativeSide([native.python.parent], variables=variables) as wheels,
    ):
        yield sandbox, wheels
