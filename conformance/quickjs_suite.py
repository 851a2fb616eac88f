"""QuickJS's own tests: scripts that throw an exception when a check fails.

Owns the list of scripts, which it reads from the Makefile's target `test`, and how one is run. The
two scripts that load a shared library do not run (L007). Rule: a script passes if it exits with
status 0.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from conformance.area import Area
from conformance.builds import put_program
from conformance.exit_status import LOG, run_and_judge
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side
from conformance.supplies import Workplace

_TIMEOUT_SECONDS = 60.0
_RUN = 'log=$1; shift; exec >"$log" 2>&1; exec ./qjs "$@"'


class QuickjsSuite(ProgramSuite):
    """The tests of the tarball that the quickjs recipe pins."""

    name = "quickjs"
    program = "QuickJS"
    code = ("quickjs_suite.py", "exit_status.py", "builds.py")

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make tests/, the Makefile, and qjs where a build has it."""
        source = self.unpack(place, tree, "tests")
        shutil.copy2(source / "Makefile", tree / "Makefile")
        put_program(self.supplies, self.recipe, side, tree / "qjs")

    def tests(self) -> Sequence[str]:
        """In the Makefile's order."""
        return list(self._commands())

    def _commands(self) -> dict[str, list[str]]:
        makefile = (self.tree("native") / "Makefile").read_text("utf-8")
        return listed_tests(makefile)

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        log = f"{area.results}/{LOG}"
        command = ["bash", "-c", _RUN, "bash", log, *self._commands()[test]]
        return run_and_judge(area, command, cwd=area.tree, timeout=_TIMEOUT_SECONDS)


def listed_tests(makefile: str) -> dict[str, list[str]]:
    """The scripts of the target `test`, each with its arguments for qjs."""
    rule = re.search(r"^test: qjs\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    if rule is None:
        raise ValueError("the Makefile has no rule 'test: qjs'")
    commands = [line.split()[1:] for line in rule[1].splitlines() if "./qjs" in line]
    return {words[-1]: words for words in commands}
