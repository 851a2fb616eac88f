"""jq's own test suite: files of programs with their input and output, and shell scripts.

Owns how they are run and judged. Rules: jq itself compares, with --run-tests; each program of a
file is a case, named after its line, and passes if jq prints no objection. A jq that is built
with threads, as the native one is, runs another test after these programs; that test does not
count.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from conformance.area import Area
from conformance.builds import put_program
from conformance.exit_status import LOG, judge, run_logged
from conformance.program_suite import ProgramSuite
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Workplace

_FILES = ("jq.test", "man.test", "base64.test", "optional.test", "onig.test", "manonig.test")
_SCRIPTS = ("shtest", "utf8test", "jq-f-test.sh")
_DRIVER = Path(__file__).with_name("jq_driver.sh")
_TIMEOUT_SECONDS = 600.0
_BEGINS = re.compile(r"Test #\d+: '.*' at line number (\d+)")
_OBJECTION = "*** "
_ENDS = re.compile(r"\d+ of \d+ tests passed \(.*")


class JqSuite(ProgramSuite):
    """The tests of the tarball that the jq recipe pins."""

    name = "jq"
    program = "jq"
    code = ("jq_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make tests/, and jq where a build has it."""
        self.unpack(place, tree, "tests")
        put_program(self.supplies, self.recipe, side, tree / "jq")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """The files of programs, then the scripts."""
        return [*_FILES, *_SCRIPTS]

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        ended, log = run_logged(
            area,
            ["bash", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", test],
            cwd=area.tree,
            timeout=_TIMEOUT_SECONDS,
            # An example of the manual prints $PAGER.
            variables={"NO_VALGRIND": "1", "PAGER": "less"},
        )
        if test in _FILES and not ended.timed_out:
            return judge_programs(log, ended.seconds)
        return judge(ended.exit_code, log, ended.seconds, timed_out=ended.timed_out)


def judge_programs(printed: bytes, seconds: float) -> Outcome:
    """The outcome of a file of programs, from what jq prints about each."""
    cases: dict[str, Verdict] = {}
    objections = []
    line, ended = "", False
    for text in printed.decode("utf-8", "replace").splitlines():
        if begins := _BEGINS.fullmatch(text):
            line = begins[1]
            cases[line] = Verdict.PASS
        elif text.startswith(_OBJECTION):
            cases[line] = Verdict.FAIL
            objections.append(f"line {line}: {text}\n")
        elif _ENDS.fullmatch(text):
            ended = True
    if not ended:
        cases[line] = Verdict.FAIL
        objections.append(f"line {line}: jq ended here\n")
    verdict = Verdict.FAIL if objections else Verdict.PASS
    return Outcome(verdict, "".join(objections), seconds, cases=cases)
