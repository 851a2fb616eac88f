"""Packages in the sandbox, and natively with the wheels of the same versions.

Owns these cases and the two sides that they run on. Rules: a kernel of `package_kernels.py`
measures itself, so neither the start of the interpreter nor the imports count; an import is a
whole command; all cases measure CPU time; the native side has one thread, as the sandbox has.
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

PACKAGES = ("numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "pillow")
IMPORTS = ("numpy", "pandas", "matplotlib.pyplot", "scipy.stats", "sklearn.ensemble")
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


@dataclass(frozen=True, slots=True)
class PackageImport(PackageRun):
    """A command that imports a module and ends."""

    module: str = ""

    def prepare(self, side: Side) -> None:
        """The first run makes what later ones use: compiled code, a list of fonts."""
        side.run(self._command)

    def measure(self, side: Side) -> float | None:
        return side.run(self._command)

    def check(self, sides: tuple[Side, ...]) -> None:
        """`Side.run` raises if the command fails."""

    @property
    def _command(self) -> tuple[str, ...]:
        return ("python3", "-c", f"import {self.module}")


def package_cases(rounds: int) -> list[PackageRun]:
    """Every import and every kernel, the latter measured `rounds` times."""
    imports = [PackageImport(f"import {name}", 5 * rounds, module=name) for name in IMPORTS]
    return [*imports, *(PackageRun(name, rounds) for name in KERNELS)]


@contextmanager
def package_sides(say: Callable[[str], None]) -> Iterator[tuple[SandboxSide, NativeSide]]:
    """A sandbox with the packages installed, and native Python with their wheels."""
    native = native_packages(Supplies(say))
    variables = {**native.variables, "OPENBLAS_NUM_THREADS": "1"}
    with (
        SandboxSide(cpu=True, packages=PACKAGES) as sandbox,
        NativeSide([native.python.parent], cpu=True, variables=variables) as wheels,
    ):
        yield sandbox, wheels
