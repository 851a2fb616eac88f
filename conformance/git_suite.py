"""git's own test suite: its shell scripts for the commands that agents use.

Owns how scripts are run and what their TAP output means. A script is a test, and each of its
cases counts. Rules: the suite tests installed programs (GIT_TEST_INSTALLED): the image's, and the
reference build; its helper test-tool is built for both sides; neither side has Perl, which some
cases use without checking for it, but both have a stand-in for the one-liners of the suite's
library.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from conformance.area import Area, ordinary_environment
from conformance.builds import BuildRequest, Built, built, reference_program
from conformance.git_scripts import SCRIPTS
from conformance.program_suite import ProgramSuite
from conformance.suite import SIDES, Outcome, Side, Verdict
from conformance.supplies import Workplace

_NOT_OF_THE_TREE = ("chainlint", "interop", "perf", "unit-tests", "t9*", "Git-SVN", "lib-gitweb*")
_SOURCE_FOLDERS = ("contrib/workdir", "mergetools")
"""Directories of the source that scripts use, besides t/."""
_HELPER = "t/helper/test-tool"
_OPTIONS = "GIT-BUILD-OPTIONS"
_TARGETS = re.compile(r"^[\w-]+$")
_PERL = Path(__file__).with_name("git_perl.sh")
_OPTIONS_OF_BOTH_SIDES = f"""\
PERL_PATH="$GIT_BUILD_DIR/{_PERL.name}"
SHELL_PATH='/bin/bash'
TEST_SHELL_PATH='/bin/bash'
"""
_INSTALLED = "installed"
_EXECUTABLES = "usr/libexec/git-core"
_TIMEOUT_SECONDS = 400.0
_DRIVER = Path(__file__).with_name("git_driver.sh")
_CASE = re.compile(
    r"(?P<failed>not )?ok (?P<number>\d+)(?P<skipped> # skip| -) (?P<title>.*?)"
    r"(?P<reason> \((?:missing|matched|not in) .*\))?(?P<todo> # TODO known breakage.*)?"
)
_SKIPPED_SCRIPT = re.compile(r"^1\.\.0 # SKIP(?P<why>.*)", re.MULTILINE)
_PLAN = re.compile(r"^1\.\.\d+$", re.MULTILINE)
_TAIL = 3_000


class GitSuite(ProgramSuite):
    """Scripts of the tarball that the git recipe pins."""

    name = "git"
    program = "git"
    code: Sequence[str] = ("git_suite.py", "builds.py", _DRIVER.name, _PERL.name)

    @cached_property
    def _built(self) -> dict[Side, Built]:
        variables = [word for word in self.recipe.build.make if not _TARGETS.match(word)]
        request = BuildRequest(
            recipe=self.recipe,
            helpers=(_HELPER,),
            make=(*variables, _HELPER, _OPTIONS),
            after=("make -C templates",),
            files=(_OPTIONS, "templates/blt"),
            # test-tool calls its commands through a table of pointers.
            fork_through_pointers=("cmd_main",),
        )
        return {side: built(self.supplies, side, request) for side in SIDES}

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [self._built[side].folder.name, self.reference(side)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Copy the suite's files to their places in the source tree; natively, install git too."""
        source = self.supplies.unpack(self.recipe, place)
        ignored = shutil.ignore_patterns(*_NOT_OF_THE_TREE)
        shutil.copytree(source / "t", tree / "t", ignore=ignored, symlinks=True)
        for folder in _SOURCE_FOLDERS:
            shutil.copytree(source / folder, tree / folder)
        shutil.copytree(self._built[side].folder, tree, dirs_exist_ok=True)
        with (tree / _OPTIONS).open("a", encoding="utf-8") as options:
            options.write(_OPTIONS_OF_BOTH_SIDES)
        for script in (_DRIVER, _PERL):
            shutil.copy2(script, tree / script.name)
        if side == "native":
            program = reference_program(self.supplies, self.recipe, self.recipe.programs[0])
            # .../usr/bin/git
            shutil.copytree(program.parents[2], tree / _INSTALLED, symlinks=True)

    def tests(self) -> Sequence[str]:
        """The chosen scripts, in the suite's order."""
        return self.scripts(SCRIPTS)

    def scripts(self, groups: Mapping[str, str]) -> list[str]:
        """The files of these scripts, in the suite's order."""
        numbers = sorted(number for group in groups.values() for number in group.split())
        folder = self.tree("sandbox") / "t"
        return [found.name for number in numbers for found in folder.glob(f"t{number}-*.sh")]

    def variables(self, area: Area) -> Mapping[str, str]:
        """Further variables of the environment."""
        return {}

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        cwd = f"{area.tree}/t"
        installed = f"{area.tree}/{_INSTALLED}" if side == "native" else ""
        ended = area.run(
            ["bash", f"{area.tree}/{_DRIVER.name}", area.results, test],
            cwd=cwd,
            env={
                **ordinary_environment(area, cwd=cwd),
                **self.variables(area),
                "TERM": "dumb",
                "GIT_TEST_CHAIN_LINT": "0",
                "GIT_TEST_INSTALLED": f"{installed}/usr/bin",
                "GIT_TEST_EXEC_PATH": f"{installed}/{_EXECUTABLES}",
            },
            timeout=_TIMEOUT_SECONDS,
        )
        kept = {name: data.decode("utf-8", "replace") for name, data in area.kept().items()}
        outcome = judge(kept.get("tap", ""), kept.get("log", ""), ended.seconds)
        if ended.timed_out:
            detail = f"timed out after {ended.seconds:.0f} s\n{outcome.detail}"
            return Outcome(Verdict.FAIL, detail, ended.seconds, cases=outcome.cases)
        return outcome


def judge(tap: str, log: str, seconds: float) -> Outcome:
    """The outcome from a script's TAP output, with what the commands of failed cases printed."""
    if (skipped := _SKIPPED_SCRIPT.search(tap)) is not None:
        return Outcome(Verdict.SKIP, skipped["why"].strip() + "\n", seconds)
    cases = dict(filter(None, map(_case, tap.splitlines())))
    complete = _PLAN.search(tap) is not None
    failed = [name for name, verdict in cases.items() if verdict is Verdict.FAIL]
    if complete and not failed:
        return Outcome(Verdict.PASS, "", seconds, cases=cases)
    parts = [_printed(name, log) for name in failed]
    if not complete:
        parts.append(f"ended early:\n{tap[-_TAIL:]}\n{log[-_TAIL:]}")
    return Outcome(Verdict.FAIL, "\n".join(parts), seconds, cases=cases)


def _case(line: str) -> tuple[str, Verdict] | None:
    """The name and verdict of a case; a known breakage counts as a pass, vanished or not."""
    if (case := _CASE.fullmatch(line)) is None:
        return None
    if case["skipped"] != " -":
        return f"{case['number']} - {case['title']}", Verdict.SKIP
    name = f"{case['number']} - {case['title']}{case['reason'] or ''}"
    return name, Verdict.FAIL if case["failed"] and not case["todo"] else Verdict.PASS


def _printed(name: str, log: str) -> str:
    """The part of the log between the previous verdict and that of this case."""
    lines = log.splitlines()
    try:
        end = lines.index(f"not ok {name}")
    except ValueError:
        return f"not ok {name}"
    before = takewhile(lambda line: _CASE.fullmatch(line) is None, reversed(lines[:end]))
    printed = "\n".join(reversed(list(before)))
    return f"{printed[-_TAIL:]}\nnot ok {name}\n"
