"""GNU tar's own test suite: one shell script, which Autotest made.

Owns how a group of it, which is one test, is run and judged. A test is called by its number
and the file it comes from, as in `042-exclude01`. Skipped on both sides is what the recipe
leaves out (ACLs, extended attributes) and what asks for archives of the network.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from conformance.area import Area
from conformance.builds import BuildRequest, Built, built, put_program
from conformance.exit_status import LOG, run_and_judge
from conformance.program_suite import ProgramSuite
from conformance.suite import SIDES, Outcome, Side
from conformance.supplies import Supplies, Workplace

_TIMEOUT_SECONDS = 240.0
"""Two tests compare files of 8 GB, byte by byte."""
_DRIVER = Path(__file__).with_name("tar_driver.sh")
_HELPERS = ("tests/genfile", "tests/checkseekhole", "tests/ckmtime")
_SOURCES = ("tests", "build-aux")


class TarSuite(ProgramSuite):
    """The tests of the tarball that the tar recipe pins."""

    code = ("tar_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies, "tar", "GNU tar")

    @cached_property
    def _built(self) -> Mapping[Side, Built]:
        """The programs that make and look at test files."""
        names = " ".join(Path(helper).name for helper in _HELPERS)
        request = BuildRequest(
            recipe=self.recipe,
            helpers=_HELPERS,
            make=("-C", "gnu", "all"),
            after=(f"make -C tests {names} CPPFLAGS=-Dfork=vfork",),
        )
        return {side: built(self.supplies, side, request) for side in SIDES}

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [self._built[side].folder.name, self.reference(side)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """tests/ with its programs, and tar where a build has it."""
        source = self.supplies.unpack(self.recipe, place)
        for name in _SOURCES:
            shutil.copytree(source / name, tree / name)
        for helper in _HELPERS:
            shutil.copy2(self._built[side].folder / helper, tree / helper)
        (program,) = self.recipe.programs
        put_program(self.supplies, self.recipe, side, tree / program.binary)
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """In the script's order."""
        return group_names((self.tree("native") / "tests/testsuite").read_text("utf-8"))

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        group = str(int(test.partition("-")[0]))
        command = ["bash", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", group]
        return run_and_judge(area, command, cwd=f"{area.tree}/tests", timeout=_TIMEOUT_SECONDS)


def group_names(script: str) -> list[str]:
    """The groups that an Autotest script knows, by number and source or last keyword."""
    found = re.search(r'^at_help_all="(.*?)^"', script, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError("the script lists no groups of tests")
    names = []
    for line in found[1].splitlines():
        number, source, _title, keywords = line.split(";")[:4]
        name = source.partition(".at:")[0]
        if name == "testsuite":
            # The groups that the main file makes by a macro.
            name = next(word for word in keywords.split() if "-" in word)
        names.append(f"{int(number):03}-{name}")
    return names
