"""GNU bash's own test suite: its run-* scripts.

Owns how a run-* script is run and judged. Rule: the driver keeps the files that the script
compares, and both sides are judged here, by the host's diff with the options of the run-* script.
So the sandbox needs no diff to have its bash judged.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from conformance.area import Area, ordinary_environment
from conformance.builds import BuildRequest, Built, built, reference_program
from conformance.program_suite import ProgramSuite
from conformance.suite import SIDES, Outcome, Side, Verdict
from conformance.supplies import Workplace

_TIMEOUT_SECONDS = 120.0
_HELPERS = ("recho", "zecho", "printenv", "xcase")
"""Small programs of the suite, which it expects in its own directory."""
_BUILD_FILES = ("config.h", "version.h", "y.tab.c", "examples/loadables/Makefile")
"""Files of a build tree that tests read."""
_NOT_TESTS = ("run-all", "run-minimal", "run-gprof")
"""Scripts that run other scripts; run-all skips them too."""
_DRIVER = Path(__file__).with_name("bash_driver.sh")

Comparisons = Mapping[str, bytes]
"""What the driver kept, by file name: N.left, N.right, N.options, N.filter, log."""


class BashSuite(ProgramSuite):
    """The run-* scripts of the tarball that the bash recipe pins."""

    name = "bash"
    program = "GNU bash"
    code = ("bash_suite.py", _DRIVER.name)

    def prepare(self) -> None:
        """Make the trees; require the programs that judging needs."""
        self.supplies.require("diff", "grep")
        super().prepare()

    def tests(self) -> Sequence[str]:
        """The run-* scripts in run-all's order."""
        scripts = sorted(path.name for path in (self.tree("native") / "tests").glob("run-*"))
        return [name for name in scripts if name not in _NOT_TESTS]

    # Making.

    @cached_property
    def _built(self) -> Mapping[Side, Built]:
        request = BuildRequest(
            recipe=self.recipe,
            helpers=_HELPERS,
            make=("version.h",),
            after=tuple(f"$CC -O2 -w -o {name} support/{name}.c" for name in _HELPERS),
            files=_BUILD_FILES,
        )
        return {side: built(self.supplies, side, request) for side in SIDES}

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [self._built[side].folder.name, self.reference(side)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Make build/ with bash, tests/ with the suite and its helpers, and the driver."""
        self.unpack(place, tree, "tests")
        built = self._built[side].folder
        for name in _HELPERS:
            shutil.copy2(built / name, tree / "tests" / name)
        for name in _BUILD_FILES:
            (tree / "build" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built / name, tree / "build" / name)
        bash = tree / "build/bash"
        if side == "native":
            (program,) = self.recipe.programs
            shutil.copy2(reference_program(self.supplies, self.recipe, program), bash)
        else:
            bash.symlink_to("/bin/bash")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    # Running.

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        build, tests = f"{area.tree}/build", f"{area.tree}/tests"
        ended = area.run(
            [f"{build}/bash", f"{area.tree}/{_DRIVER.name}", test, area.results],
            cwd=tests,
            env={
                **ordinary_environment(area, cwd=tests, programs=[tests]),
                "LANG": "C.UTF-8",
                "TERM": "dumb",
                "THIS_SH": f"{build}/bash",
                "BUILD_DIR": build,
            },
            timeout=_TIMEOUT_SECONDS,
        )
        return judge(area.kept(), ended.seconds, timed_out=ended.timed_out)


# Judging.


def judge(kept: Comparisons, seconds: float, *, timed_out: bool) -> Outcome:
    """The verdict that the run-* script's own comparisons would give."""
    found = []
    numbers = sorted(int(name.removesuffix(".right")) for name in kept if name.endswith(".right"))
    for number in numbers:
        left, right = kept.get(f"{number}.left", b""), kept[f"{number}.right"]
        found.append(_difference(left, right, kept, number))
    if timed_out:
        found.append(f"timed out after {_TIMEOUT_SECONDS:.0f} s\n")
    elif not numbers:
        found.append("nothing was compared\n")
    detail = "".join(found)
    if detail:
        detail += kept.get("log", b"").decode("utf-8", "replace")
    return Outcome(Verdict.FAIL if detail else Verdict.PASS, detail, seconds)


def _difference(left: bytes, right: bytes, kept: Comparisons, number: int) -> str:
    """What the host's diff prints, after applying the filter that the script used."""
    with tempfile.TemporaryDirectory(prefix="wasmsand-judge-") as folder:
        expected, actual = Path(folder, "expected"), Path(folder, "actual")
        expected.write_bytes(right)
        actual.write_bytes(left)
        if f"{number}.filter" in kept:
            arguments = _words(kept[f"{number}.filter"])
            filtered = _run(["grep", "-a", *arguments, str(actual)])
            actual.write_bytes(filtered)
        options = _words(kept.get(f"{number}.options", b""))
        printed = _run(["diff", "-a", "-U1", *options, str(expected), str(actual)])
    # The first two lines name the temporary files.
    lines = printed.decode("utf-8", "replace").splitlines(keepends=True)[2:]
    return "".join(lines)


def _words(lines: bytes) -> list[str]:
    return [line for line in lines.decode("utf-8", "replace").splitlines() if line]


def _run(argv: list[str]) -> bytes:
    return subprocess.run(argv, stdout=subprocess.PIPE, check=False).stdout
