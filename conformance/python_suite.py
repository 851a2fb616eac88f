"""CPython's own test suite: `python -m test`, one module at a time.

Owns how a module is run and judged. Rules: a module passes if regrtest says so, and is skipped
if regrtest skips all of it; the tests come from the tarball that the recipe pins, because the
image has none; neither side enables resources (network, cpu, large files); modules that regrtest
splits are split here too; one check in the tests' support library is changed on both sides
(`_ask_for_semaphores_without_fork`).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.area import Area
from conformance.builds import reference_program
from conformance.exit_status import LOG, judge, run_logged
from conformance.program_suite import ProgramSuite
from conformance.sandboxed import SandboxArea, image_with
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Workplace
from wasmsand.kernel.vfs import ROOT, FrozenTree
from wasmsand.machine import Machine

_DRIVER = Path(__file__).with_name("python_driver.sh")
_TIMEOUT_SECONDS = 300.0
_DIVIDED = (
    "test_asyncio",
    "test_concurrent_futures",
    "test_future_stmt",
    "test_gdb",
    "test_inspect",
    "test_multiprocessing_fork",
    "test_multiprocessing_forkserver",
    "test_multiprocessing_spawn",
    "test_pydoc",
)
"""Modules that are split; the same as regrtest's SPLITTESTDIRS."""
_SKIPPED = re.compile(rb"^(1 test skipped:|\S+ skipped -- .*)$", re.MULTILINE)
_SOME_PASSED = re.compile(rb"^(All )?\d+ tests? OK\.$", re.MULTILINE)
_NONE_RUN = re.compile(rb"^Total tests: run=0\b.*$", re.MULTILINE)
_NO_TESTS_RAN = 4
_INSTALLED = "python"
_TESTS = "tests"
_LIBRARY = "lib/python3.14"


class PythonSuite(ProgramSuite):
    """The tests of the tarball that the python recipe pins."""

    name = "python"
    program = "CPython"
    code = ("python_suite.py", "exit_status.py", "builds.py", _DRIVER.name)

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Copy the tests, and the reference's installation; in the sandbox, link to the image's."""
        source = self.supplies.unpack(self.recipe, place)
        shutil.copytree(source / "Lib/test", tree / _TESTS)
        _ask_for_semaphores_without_fork(tree / _TESTS)
        (program,) = self.recipe.programs
        if side == "native":
            reference = reference_program(self.supplies, self.recipe, program)
            installed = tree / _INSTALLED
            shutil.copytree(reference.parents[1], installed, symlinks=True)
            (installed / _LIBRARY / "test").symlink_to(f"../../../{_TESTS}")
            # In the sandbox it leads there through /etc/alternatives.
            for name in ("python", "python3"):
                (installed / "bin" / name).unlink(missing_ok=True)
                (installed / "bin" / name).symlink_to("../libexec/python3")
        else:
            (tree / _INSTALLED).symlink_to("/usr")
        shutil.copy2(_DRIVER, tree / _DRIVER.name)

    @contextmanager
    def _area(self, side: Side) -> Iterator[Area]:
        """An area with the tests in the library, where isolated interpreters look for them."""
        if side == "sandbox":
            with self._lock:
                if self._image is None:
                    self._image = _with_tests_in_library(image_with(self.tree(side)))
        with super()._area(side) as area:
            yield area

    def tests(self) -> Sequence[str]:
        """The modules, as regrtest names them."""
        folder = self.tree("sandbox") / _TESTS
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
        ended, log = run_logged(
            area,
            ["sh", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", test],
            cwd=area.tree,
            timeout=_TIMEOUT_SECONDS,
            variables={"LC_ALL": "C.UTF-8", "TERM": "vt100"},
        )
        return judge_module(ended.exit_code, log, ended.seconds, timed_out=ended.timed_out)


def _ask_for_semaphores_without_fork(tests: Path) -> None:
    """Let the tests' support library check for semaphores without the start method fork.

    On Linux it uses fork for the check. Without fork, it would skip every test that uses
    multiprocessing in any way. Natively this changes nothing.
    """
    support = tests / "support/__init__.py"
    text = support.read_text("utf-8")
    asked, instead = "get_context('fork')", "get_context('fork' if hasattr(os, 'fork') else None)"
    if text.count(asked) != 1:
        raise ValueError(
            f"{support} does not contain {asked} exactly once: adapt the change to this version"
        )
    support.write_text(text.replace(asked, instead), encoding="utf-8")


def _with_tests_in_library(image: FrozenTree) -> FrozenTree:
    machine = Machine(image=image)
    namespace = machine.kernel.namespace
    target, link = f"{SandboxArea.tree}/{_TESTS}", f"/usr/{_LIBRARY}/test"
    namespace.symlink(ROOT, target.encode(), namespace.root, link.encode())
    return machine.kernel.root.freeze()


def judge_module(exit_code: int, log: bytes, seconds: float, *, timed_out: bool) -> Outcome:
    """The outcome of one module, from regrtest's exit status and report."""
    if exit_code == _NO_TESTS_RAN:
        return Outcome(Verdict.SKIP, "no tests ran", seconds)
    skipped = _SKIPPED.search(log) if exit_code == 0 else None
    if skipped is not None and _SOME_PASSED.search(log) is None:
        return Outcome(Verdict.SKIP, skipped[0].decode("utf-8", "replace"), seconds)
    none_run = _NONE_RUN.search(log) if exit_code == 0 else None
    if none_run is not None:  # regrtest skipped all tests of the module, and calls that a success
        return Outcome(Verdict.SKIP, none_run[0].decode("utf-8", "replace"), seconds)
    return judge(exit_code, log, seconds, timed_out=timed_out)
