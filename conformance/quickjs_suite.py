"""QuickJS's own tests: scripts that throw when something is not as it should be.

Owns which they are, as the Makefile's target `test` lists them, and how one is run. Left
out are the two that load a shared library (L007). Rule: a script passes if it ends with
status 0.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from conformance.area import Area, ordinary_environment
from conformance.builds import reference_key, reference_program
from conformance.exit_status import judge
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side
from conformance.supplies import Supplies, Workplace

_TIMEOUT_SECONDS = 60.0
_LOG = "log"
_RUN = 'log=$1; shift; exec >"$log" 2>&1; exec ./qjs "$@"'


class QuickjsSuite(ProgramSuite):
    """The tests of the tarball that the quickjs recipe pins."""

    code = ("quickjs_suite.py", "exit_status.py", "builds.py")

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies, "quickjs", "QuickJS")

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        reference = reference_key(self.supplies, self.recipe) if side == "native" else ""
        return [self.recipe.source.sha256, reference]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """tests/, the Makefile, and qjs where a build has it."""
        source = self.supplies.unpack(self.recipe, place)
        shutil.copytree(source / "tests", tree / "tests")
        shutil.copy2(source / "Makefile", tree / "Makefile")
        (program,) = self.recipe.programs
        if side == "native":
            shutil.copy2(reference_program(self.supplies, self.recipe, program), tree / "qjs")
        else:
            (tree / "qjs").symlink_to("/usr/bin/qjs")

    def tests(self) -> Sequence[str]:
        """In the Makefile's order."""
        return list(self._commands())

    def _commands(self) -> dict[str, list[str]]:
        makefile = (self.tree("native") / "Makefile").read_text("utf-8")
        return listed_tests(makefile)

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        ended = area.run(
            ["bash", "-c", _RUN, "bash", f"{area.results}/{_LOG}", *self._commands()[test]],
            cwd=area.tree,
            env=ordinary_environment(area, cwd=area.tree),
            timeout=_TIMEOUT_SECONDS,
        )
        log = area.kept().get(_LOG, b"")
        return judge(ended.exit_code, log, ended.seconds, timed_out=ended.timed_out)


def listed_tests(makefile: str) -> dict[str, list[str]]:
    """The scripts of the target `test`, each with the arguments of its qjs."""
    rule = re.search(r"^test: qjs\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    if rule is None:
        raise ValueError("the Makefile has no rule 'test: qjs'")
    commands = [line.split()[1:] for line in rule[1].splitlines() if "./qjs" in line]
    return {words[-1]: words for words in commands}
