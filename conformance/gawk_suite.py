"""GNU awk's own test suite: a Makefile with one target per test.

Owns how such a target is run without make, so that the sandbox needs no make to have its awk
judged: `make -n` prints the commands when the suite is built, and both sides run those. The
tests of features that the recipe omits (MPFR, loadable extensions, persistent memory) and of the
network do not run.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from conformance.area import Area
from conformance.builds import BuildRequest, Built, built, put_program
from conformance.exit_status import LOG, run_and_judge
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side
from conformance.supplies import Workplace

_LISTS = (
    "BASIC_TESTS",
    "UNIX_TESTS",
    "GAWK_EXT_TESTS",
    "LOCALE_CHARSET_TESTS",
    "MACHINE_TESTS",
)
_TIMEOUT_SECONDS = 60.0
_DRIVER = Path(__file__).with_name("gawk_driver.sh")
_COMMANDS = "test/commands"
_MAKEFILE = "test/Makefile"
"""Some tests use the Makefile as input text."""
_TELL_COMMANDS = f"""
    mkdir {_COMMANDS} && cd test &&
    for test in $(make -s --eval='tell: ; @echo {" ".join(f"$({name})" for name in _LISTS)}' tell)
    do make -s -n $test >commands/$test || exit
    done
"""


class GawkSuite(ProgramSuite):
    """The tests of the tarball that the gawk recipe pins."""

    name = "gawk"
    program = "GNU awk"
    code = ("gawk_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    @cached_property
    def _built(self) -> Built:
        """The native build, for both sides: only its list of tests and commands is used."""
        request = BuildRequest(
            recipe=self.recipe,
            helpers=(),
            make=("Makefile",),
            after=(_TELL_COMMANDS,),
            files=(_COMMANDS, _MAKEFILE),
            makefile="test",
            variables=_LISTS,
        )
        return built(self.supplies, "native", request)

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [self._built.folder.name, self.reference(side)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make test/, and gawk where a build has it."""
        self.unpack(place, tree, "test")
        shutil.copy2(self._built.folder / _MAKEFILE, tree / _MAKEFILE)
        put_program(self.supplies, self.recipe, side, tree / "gawk")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """In the Makefile's order."""
        return [test for name in _LISTS for test in self._built.words(name)]

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        printed = (self._built.folder / _COMMANDS / test).read_text("utf-8")
        commands = separate_shells(printed)
        command = ["bash", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", commands]
        return run_and_judge(area, command, cwd=f"{area.tree}/test", timeout=_TIMEOUT_SECONDS)


def separate_shells(commands: str) -> str:
    """A script that runs each command of a Makefile in a shell of its own, as make does."""
    script = []
    command: list[str] = []
    for line in commands.splitlines():
        command.append(line)
        if not line.endswith("\\"):
            script.append(shlex.join(["bash", "-c", "\n".join(command)]) + "\n")
            command = []
    return "".join(script)
