"""Suites of shell tests that follow automake's conventions: grep, sed, coreutils, ...

Owns how such a test is run; its exit status is its verdict. An `AutomakeTests` describes what is
particular to a suite; see `automake_suites.py`. Rule: tests written in Perl do not run, because
the sandbox has no Perl.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from conformance.area import Area, ordinary_environment
from conformance.builds import BuildRequest, Built, built, put_program
from conformance.exit_status import LOG, judge
from conformance.program_suite import ProgramSuite
from conformance.suite import SIDES, Outcome, Side
from conformance.supplies import Supplies, Workplace

_DRIVER = Path(__file__).with_name("automake_driver.sh")


@dataclass(frozen=True)
class AutomakeTests:
    """What is particular to one suite. Paths are relative to the source tree."""

    recipe: str
    title: str
    sources: tuple[str, ...]
    """Directories and files of the source that tests read, including the tests themselves."""
    makefile: str = "."
    """The directory of the Makefile that lists the tests; tests are started there."""
    tests: str = "TESTS"
    """The Makefile variable that lists the tests."""
    without: str | None = None
    """The Makefile variable that lists tests to skip, because they need root."""
    extensions: tuple[str, ...] = (".sh",)
    """The suffixes of shell tests; "" for names without a dot."""
    helpers: tuple[str, ...] = ()
    """Programs that only the suite needs (check_PROGRAMS)."""
    helpers_make: tuple[str, ...] = ("Makefile",)
    """Arguments with which make builds them; "Makefile" builds nothing."""
    helpers_after: tuple[str, ...] = ()
    """Shell commands after that make."""
    config_header: str = "config.h"
    """The header that configure writes."""
    built_files: tuple[str, ...] = ()
    """Other files that the build makes and tests read."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Symbolic links that give programs further names."""
    setup: str = ""
    """Shell commands that the Makefile runs before each test."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the Makefile sets, besides those of all suites."""
    timeout_seconds: float = 60.0


class AutomakeSuite(ProgramSuite):
    """The shell tests that a Makefile lists."""

    code: Sequence[str] = ("automake_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    def __init__(self, supplies: Supplies, tests: AutomakeTests) -> None:
        self.name, self.program = tests.recipe, tests.title
        super().__init__(supplies)
        self._about = tests

    # Making.

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        programs = [(program.binary, program.names) for program in self.recipe.programs]
        return [
            repr(self._about),
            repr(programs),
            self._built[side].folder.name,
            self.reference(side),
        ]

    @cached_property
    def _built(self) -> Mapping[Side, Built]:
        about = self._about
        variables = (about.tests, "XFAIL_TESTS", *filter(None, [about.without]))
        request = BuildRequest(
            recipe=self.recipe,
            helpers=about.helpers,
            make=about.helpers_make,
            after=about.helpers_after,
            files=(about.config_header, *about.built_files),
            makefile=about.makefile,
            variables=variables,
        )
        return {side: built(self.supplies, side, request) for side in SIDES}

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Put in place the tests, the built files, and the programs where a build has them."""
        source = self.supplies.unpack(self.recipe, place)
        for name in self._about.sources:
            _copy(source / name, tree / name)
        build = self._built[side].folder
        about = self._about
        for name in (*about.helpers, about.config_header, *about.built_files):
            _copy(build / name, tree / name)
        for program in self.recipe.programs:
            put_program(self.supplies, self.recipe, side, tree / program.binary, program)
        for name, target in self._about.links.items():
            _link(target, tree / name)
        _copy(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """The shell tests in the Makefile's order."""
        native = self._built["native"]
        about = self._about
        without = set(native.words(about.without)) if about.without else set()
        return [
            name
            for name in dict.fromkeys(native.words(about.tests))
            if Path(name).suffix in about.extensions and name not in without
        ]

    # Running.

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        about = self._about
        cwd = str(Path(area.tree) / about.makefile)
        ended = area.run(
            ["bash", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", about.setup, test],
            cwd=cwd,
            env=self._environment(area, cwd),
            timeout=about.timeout_seconds,
        )
        outcome = judge(
            ended.exit_code,
            area.kept().get(LOG, b""),
            ended.seconds,
            timed_out=ended.timed_out,
            expected_to_fail=test in self._built[side].words("XFAIL_TESTS"),
        )
        return outcome

    def _environment(self, area: Area, cwd: str) -> dict[str, str]:
        """The variables that Makefiles set for every test, and those of an ordinary user."""
        tree = area.tree
        version = self.recipe.version
        binaries = [Path(program.binary) for program in self.recipe.programs]
        folders = list(dict.fromkeys(f"{tree}/{binary.parent}" for binary in binaries))
        top = "." if self._about.makefile == "." else ".."
        return {
            **ordinary_environment(area, cwd=cwd, programs=folders),
            "VERBOSE": "yes",
            "VERSION": version,
            "PACKAGE_VERSION": version,
            "PACKAGE_BUGREPORT": f"bug-{self.name}@gnu.org",
            "LOCALE_FR": "none",
            "LOCALE_FR_UTF8": "none",
            "LOCALE_JA": "none",
            "abs_top_builddir": tree,
            "abs_top_srcdir": tree,
            "abs_srcdir": cwd,
            "srcdir": ".",
            "top_srcdir": top,
            "built_programs": " ".join(binary.name for binary in binaries),
            "fail": "0",
            "host_os": "linux-gnu",
            "host_triplet": "x86_64-pc-linux-gnu",
            "CONFIG_HEADER": f"{tree}/{self._about.config_header}",
            "CC": "gcc",
            "AWK": "awk",
            "EGREP": "grep -E",
            "EXEEXT": "",
            "MAKE": "make",
            "PERL": "perl",
            **self._about.environment,
        }


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _link(target: str, name: Path) -> None:
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(target)
