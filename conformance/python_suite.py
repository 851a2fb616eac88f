"""CPython's own test suite: `python -m test`, one module at a time.

Owns how a module is run and judged. Rules: a module has passed if regrtest says so, and is
skipped if regrtest skipped all of it; the tests come from the tarball that the recipe pins,
since the image has none; no resources (network, cpu, large files) are enabled on either
side; modules that regrtest itself divides are divided here too.
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
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Supplies, Workplace

_DRIVER = Path(__file__).with_name("python_driver.sh")
_LOG = "log"
_TIMEOUT_SECONDS = 900.0
_DIVIDED = ("test_asyncio", "test_concurrent_futures", "test_future_stmt", "test_inspect")
_SKIPPED = re.compile(rb"^(1 test skipped:|\S+ skipped -- .*)$", re.MULTILINE)
_INSTALLED = "python"
_TESTS = "lib"


class PythonSuite(ProgramSuite):
    """The tests of the tarball that the python recipe pins."""

    code = ("python_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies, "python", "CPython")

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        reference = reference_key(self.supplies, self.recipe) if side == "native" else ""
        return [self.recipe.source.sha256, reference]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """The tests, and an installation: natively the reference's, else the image's."""
        source = self.supplies.unpack(self.recipe, place)
        shutil.copytree(source / "Lib/test", tree / _TESTS / "test")
        (program,) = self.recipe.programs
        if side == "native":
            reference = reference_program(self.supplies, self.recipe, program)
            shutil.copytree(reference.parents[1], tree / _INSTALLED, symlinks=True)
        else:
            (tree / _INSTALLED).symlink_to("/usr")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    def tests(self) -> Sequence[str]:
        """The modules, as regrtest names them."""
        folder = self.tree("native") / _TESTS / "test"
        names = []
        for path in sorted(folder.glob("test_*")):
            if path.name in _DIVIDED:
                inner = sorted(path.glob("test_*.py"))
                names += [f"test.{path.name}.{part.stem}" for part in inner]
            elif path.suffix == ".py" or (path / "__init__.py").is_file():
                names.append(path.stem)
        return names

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        ended = area.run(
            ["sh", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{_LOG}", test],
            cwd=area.tree,
            env={**ordinary_environment(area, cwd=area.tree), "LC_ALL": "C.UTF-8", "TERM": "vt100"},
            timeout=_TIMEOUT_SECONDS,
        )
        log = area.kept().get(_LOG, b"")
        return judge_module(ended.exit_code, log, ended.seconds, timed_out=ended.timed_out)


def judge_module(exit_code: int, log: bytes, seconds: float, *, timed_out: bool) -> Outcome:
    """The outcome of one module, from regrtest's exit status and report."""
    if exit_code == 0 and _SKIPPED.search(log):
        reason = _SKIPPED.search(log)
        assert reason is not None
        return Outcome(Verdict.SKIP, reason[0].decode("utf-8", "replace"), seconds)
    return judge(exit_code, log, seconds, timed_out=timed_out)
