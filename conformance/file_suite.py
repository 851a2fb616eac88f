"""file's own test suite: data files, each with the description that `file` must print.

Owns how a test is run and judged. Rules: `file` itself takes the place of the suite's small
program that calls the library; both sides use the magic rules (magic.mgc) that the recipe
compiled, unless the test brings its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from conformance.area import Area
from conformance.builds import put_program, reference_program
from conformance.exit_status import LOG, run_and_judge
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side
from conformance.supplies import Workplace

_DRIVER = Path(__file__).with_name("file_driver.sh")
_RULES = "share/misc/magic.mgc"
"""The path of the magic rules below /usr."""
_TIMEOUT_SECONDS = 60.0


class FileSuite(ProgramSuite):
    """The tests of the tarball that the file recipe pins."""

    name = "file"
    program = "file"
    code = ("file_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make tests/, and file with its magic rules."""
        self.unpack(place, tree, "tests")
        put_program(self.supplies, self.recipe, side, tree / "file")
        if side == "native":
            reference = reference_program(self.supplies, self.recipe, self.recipe.programs[0])
            shutil.copy2(reference.parents[1] / _RULES, tree / "magic.mgc")
        else:
            (tree / "magic.mgc").symlink_to(f"/usr/{_RULES}")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """The names of the data files, without .testfile."""
        folder = self.tree("native") / "tests"
        return sorted(path.stem for path in folder.glob("*.testfile"))

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        command = ["bash", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", test]
        return run_and_judge(area, command, cwd=f"{area.tree}/tests", timeout=_TIMEOUT_SECONDS)
