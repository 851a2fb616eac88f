"""GNU bc's own test suite: programs for bc, without the expected output.

Owns how a program is run and judged. Rule: upstream compares two builds of bc with each other,
and so do we: the output of the reference build is the expected output of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.area import Area
from conformance.builds import put_program, reference_key, reference_program
from conformance.exit_status import LOG, run_and_judge
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side
from conformance.supplies import Workplace

_TIMEOUT_SECONDS = 600.0
_NOT_TESTS = ("timetest",)
_COMPARE = 'exec >"$1" 2>&1; ../bc -l "$2" </dev/null | diff -u "$2.expected" -'


class BcSuite(ProgramSuite):
    """The programs of the tarball that the bc recipe pins."""

    name = "bc"
    program = "GNU bc"
    code = ("bc_suite.py", "exit_status.py", "builds.py")

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [self.recipe.source.sha256, reference_key(self.supplies, self.recipe)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make Test/ with the output of the reference build, and bc."""
        self.unpack(place, tree, "Test")
        folder = tree / "Test"
        (program,) = (program for program in self.recipe.programs if program.name == "bc")
        reference = reference_program(self.supplies, self.recipe, program)
        for test in _tests_in(folder):
            tell = f'"{reference}" -l {test} </dev/null >{test}.expected 2>&1'
            place.run(["sh", "-c", tell], folder)
        put_program(self.supplies, self.recipe, side, tree / "bc", program)

    def tests(self) -> Sequence[str]:
        """All programs of the suite."""
        return _tests_in(self.tree("native") / "Test")

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        command = ["bash", "-c", _COMPARE, "bash", f"{area.results}/{LOG}", test]
        return run_and_judge(area, command, cwd=f"{area.tree}/Test", timeout=_TIMEOUT_SECONDS)


def _tests_in(folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix != ".expected" and path.name not in _NOT_TESTS
    )
