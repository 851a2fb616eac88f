"""GNU findutils' own test suite: newer tests follow automake's conventions, older ones DejaGnu's.

Owns how the older ones are run: in a small Tcl interpreter, the same on both sides, with the few
DejaGnu commands that they use (`dejagnu_driver.tcl`). The tests of locate do not run, because the
image has no locate.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from conformance.area import Area
from conformance.automake_suite import AutomakeSuite, AutomakeTests
from conformance.builds import image_program, reference_program
from conformance.exit_status import LOG, run_and_judge
from conformance.suite import Outcome, Side
from conformance.supplies import Supplies, Workplace

_TOOLS = ("find", "xargs")
_DEJAGNU = ".exp"
_DRIVER = Path(__file__).with_name("dejagnu_driver.tcl")
_TCL = "jimsh"
_TESTS = AutomakeTests(
    recipe="findutils",
    title="GNU findutils",
    sources=("tests", "init.cfg", *(f"{tool}/testsuite" for tool in _TOOLS)),
    without="all_root_tests",
    extensions=(".sh", ""),
    helpers=("tests/xargs/test-sigusr",),
    # It needs error.h, which glibc has and gnulib makes elsewhere. It forks only to exec.
    helpers_after=(
        "make -C gl && make -C lib && "
        "make tests/xargs/test-sigusr CPPFLAGS='-Igl/lib -Dfork=vfork' LDADD=gl/lib/libgnulib.a",
    ),
    setup=". ./tests/lang-default; . ./tests/envvar-check",
    timeout_seconds=120.0,
)


class FindutilsSuite(AutomakeSuite):
    """The newer and the older tests."""

    code = (*AutomakeSuite.code, "findutils_suite.py", _DRIVER.name)

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies, _TESTS)

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [*super().ingredients(side), str(self._tcl(side))]

    def _tcl(self, side: Side) -> Path:
        recipe = self.supplies.recipe("jimtcl")
        find = reference_program if side == "native" else image_program
        return find(self.supplies, recipe, recipe.programs[0])

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make the tree of the newer tests, and add the Tcl interpreter."""
        super().make_tree(side, tree, place)
        shutil.copy2(self._tcl(side), tree / _TCL)
        (tree / _TCL).chmod(0o755)
        shutil.copy2(_DRIVER, tree / _DRIVER.name)
        # If this file exists, the suite assumes that it is in a build tree.
        (tree / "xargs/xargs.o").touch()

    @cached_property
    def _dejagnu_tests(self) -> list[str]:
        tree = self.tree("native")
        found = [
            path.relative_to(tree)
            for tool in _TOOLS
            for path in sorted((tree / tool / "testsuite").glob(f"{tool}.*/*{_DEJAGNU}"))
        ]
        return [str(path) for path in found]

    def tests(self) -> Sequence[str]:
        """The newer tests, then the older ones."""
        return [*super().tests(), *self._dejagnu_tests]

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        if not test.endswith(_DEJAGNU):
            return super().run_in(area, test, side)
        tool, folder, *rest = test.split("/")
        cwd = f"{area.tree}/{tool}/{folder}"
        command = [f"{area.tree}/{_TCL}", f"{area.tree}/{_DRIVER.name}", tool]
        command += [f"{area.tree}/{tool}/{tool}", "/".join(rest)]
        return run_and_judge(
            area,
            ["bash", "-c", 'exec "$@" >"$0" 2>&1', f"{area.results}/{LOG}", *command],
            cwd=cwd,
            timeout=_TESTS.timeout_seconds,
            variables={"LC_ALL": "C"},
        )
