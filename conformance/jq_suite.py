"""jq's own test suite: programs with their input and output, and shell scripts.

Owns how the files of programs (tests/*.test) are taken apart, so that each program is a
test, and how tests are judged. Rules: jq itself compares, by --run-tests; a program has
passed if jq says so. What a jq that is built with threads tries after its programs, as
the native one does, is no part of the verdict.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.area import Area, ordinary_environment
from conformance.automake_suite import judge
from conformance.builds import reference_key, reference_program
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side
from conformance.supplies import Supplies, Workplace

_FILES = ("jq.test", "man.test", "base64.test", "optional.test", "onig.test", "manonig.test")
_SCRIPTS = ("shtest", "utf8test", "jq-f-test.sh")
"""shtest alone runs two thousand commands."""
_PROGRAMS = "programs"
_DRIVER = Path(__file__).with_name("jq_driver.sh")
_LOG = "log"
_TIMEOUT_SECONDS = 600.0
_FAILS = re.compile(r"%%FAIL( IGNORE MSG)?")


@dataclass(frozen=True)
class Case:
    """One test of a file: the lines that jq reads for it."""

    line: int
    text: str


class JqSuite(ProgramSuite):
    """The tests of the tarball that the jq recipe pins."""

    code = ("jq_suite.py", "automake_suite.py", "builds.py", _DRIVER.name)

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies, "jq", "jq")

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        reference = reference_key(self.supplies, self.recipe) if side == "native" else ""
        return [self.recipe.source.sha256, reference]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """tests/, the programs one file each, and jq where a build has it."""
        source = self.supplies.unpack(self.recipe, place)
        shutil.copytree(source / "tests", tree / "tests")
        for name in _FILES:
            folder = tree / _PROGRAMS / name
            folder.mkdir(parents=True)
            for case in cases((source / "tests" / name).read_text("utf-8")):
                (folder / str(case.line)).write_text(case.text, encoding="utf-8")
        (program,) = self.recipe.programs
        if side == "native":
            shutil.copy2(reference_program(self.supplies, self.recipe, program), tree / "jq")
        else:
            (tree / "jq").symlink_to("/usr/bin/jq")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """Programs are named after their file and line."""
        folder = self.tree("native") / _PROGRAMS
        programs = [
            f"{name}/{line}"
            for name in _FILES
            for line in sorted(int(path.name) for path in (folder / name).iterdir())
        ]
        return [*programs, *_SCRIPTS]

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        ended = area.run(
            ["bash", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{_LOG}", test],
            cwd=area.tree,
            env={
                **ordinary_environment(area, cwd=area.tree),
                "NO_VALGRIND": "1",
                "PAGER": "less",  # which a program of the manual prints
            },
            timeout=_TIMEOUT_SECONDS,
        )
        log = area.kept().get(_LOG, b"")
        return judge(ended.exit_code, log, ended.seconds, timed_out=ended.timed_out)


def cases(text: str) -> Iterator[Case]:
    """The tests of a file, by the rules that jq reads it by."""
    lines = list(enumerate(text.splitlines(keepends=True), 1))
    position = 0
    while position < len(lines):
        number, line = lines[position]
        if _separates(line):
            position += 1
            continue
        began = position
        if _FAILS.fullmatch(line.rstrip("\n")):
            # The program, and the message or a line for it.
            position += 3
        else:
            # The program and its input, then results until a line that separates.
            position += 2
            while position < len(lines) and not _separates(lines[position][1]):
                position += 1
        yield Case(number, "".join(line for _, line in lines[began:position]))


def _separates(line: str) -> bool:
    stripped = line.lstrip(" \t")
    return stripped in ("", "\n") or stripped.startswith("#")
