"""The packages' own tests: one file at a time by pytest, beside the native wheels.

Owns how a file of tests is run and judged; `package_suites.py` says which files of each package
are run. Rules: the native side is the wheel of the same version (`wheels.py`); the tests are those
that the wheel contains, or those of the recipe's source if the wheel lacks some; the image's
packages have no tests, so what the wheel has and the image lacks is linked into them; each test
function is a case, by its name and parameters; a case that fails runs once more, with the other
failed ones of its file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from conformance.area import Area, Ended
from conformance.builds import testing_python
from conformance.exit_status import LOG, judge, run_logged
from conformance.program_suite import ProgramSuite
from conformance.sandboxed import SandboxArea, image_with
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import ROOT as REPOSITORY
from conformance.supplies import Supplies, Workplace
from conformance.wheels import FILE as WHEELS
from conformance.wheels import NativePackages, load_wheels, native_packages
from userland.builder.keys import file_digest, tree_digest
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs import ROOT, FrozenTree
from wasmsand.machine import Machine
from wasmsand.machine.packages.offered import registry

_DRIVER = Path(__file__).with_name("package_driver.sh")
_PLUGIN = Path(__file__).with_name("package_report.py")
_TOOLS = ("_pytest", "hypothesis", "iniconfig", "packaging", "pluggy", "pygments", "pytest")
_TOOL_FILES = ("_hypothesis_pytestplugin.py", "_hypothesis_globals.py", "py.py", "six.py")
_MORE_TOOLS = ("sortedcontainers", "_hypothesis_ftz_detector.py")
_TIMEOUT_SECONDS = 900.0
_VERDICTS = "verdicts"
_ADDED = "added"
_PYTHON = "/usr/bin/python3"
_TESTING_PYTHON = "/usr/local/bin/python-testing"
_SITE = "/usr/lib/python3.14/site-packages"
_PACKAGES = REPOSITORY / "src/wasmsand_packages"
_SUMMARY_TAIL = 5_000
_SOME_FAILED = 1
_ALL_SKIPPED = 5


class PackageSuite(ProgramSuite):
    """The tests of one package."""

    folder: str
    """The package's directory in site-packages."""
    files: tuple[str, ...]
    """Patterns of the files of tests, below site-packages."""
    left_out: tuple[str, ...] = ()
    """Patterns of files that are not run; the class says why."""
    options: tuple[str, ...] = ()
    """Options of pytest: those of the package's own command that runs its tests."""
    source_tests: tuple[str, str] | None = None
    """Where the recipe's source has the tests, and their place in site-packages; None if the
    wheel has all of them."""
    tests_use_current_directory: bool = False
    """Whether tests name their files relative to the directory that holds the tests."""
    test_modules: str | None = None
    """The recipe of the extension modules that only the tests use; the sandbox's interpreter is
    then linked with them."""
    code: Sequence[str] = ("package_suite.py", "exit_status.py", _DRIVER.name, _PLUGIN.name)

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies)
        self._native: NativePackages | None = None

    def native(self) -> NativePackages:
        """The native side."""
        if self._native is None:
            self._native = native_packages(self.supplies)
        return self._native

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`: the tests come from the wheel or the source."""
        source = [self.recipe.source.sha256, str(self.native().site)] if self.source_tests else []
        return [file_digest(WHEELS), *source]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Copy the tools, and what must be added to site-packages of this side."""
        site = self.native().site
        tools = tree / "tools"
        tools.mkdir()
        for name in (*_TOOLS, *_TOOL_FILES, *_MORE_TOOLS):
            if (site / name).is_dir():
                shutil.copytree(site / name, tools / name)
            elif (site / name).is_file():
                shutil.copy2(site / name, tools)
        for info in site.glob("*.dist-info"):
            if info.name.partition("-")[0] in {"pytest", "hypothesis", "pluggy"}:
                shutil.copytree(info, tools / info.name)
        shutil.copy2(_PLUGIN, tools)
        shutil.copy2(_DRIVER, tree)
        added = tree / _ADDED
        added.mkdir()
        if side == "sandbox":
            libraries = shutil.ignore_patterns("*.so", "__pycache__", "*.pyc")
            shutil.copytree(site / self.folder, added / self.folder, ignore=libraries)
        if self.source_tests:
            there, here = self.source_tests
            source = self.supplies.unpack(self.recipe, place) / there
            shutil.copytree(source, added / here, dirs_exist_ok=True)
            if side == "native" and (added / self.folder).is_dir():
                _link_entries(site / self.folder, added / self.folder)

    def key(self, side: Side) -> str:
        """See `ProgramSuite.key`: the packages' image decides the sandbox's outcomes too."""
        key = f"{super().key(side)}-{' '.join(self.options)}"
        if side == "native":
            return key
        return f"{key}-{tree_digest(_PACKAGES)}-{self._programs()}"

    def _programs(self) -> Path | None:
        """The directory of the interpreter with modules for tests, if the tests need one."""
        if self.test_modules is None:
            return None
        return testing_python(self.supplies, self.test_modules).parent

    def tests(self) -> Sequence[str]:
        """The files, by their paths in site-packages."""
        root = self.tree("native") / _ADDED if self.source_tests else self.native().site
        found = {path for pattern in self.files for path in root.glob(pattern)}
        names = sorted(str(path.relative_to(root)) for path in found if path.is_file())
        return [name for name in names if not any(fnmatch(name, out) for out in self.left_out)]

    @contextmanager
    def _area(self, side: Side) -> Iterator[Area]:
        if side == "sandbox":
            with self._lock:
                if self._image is None:
                    self._image = self._image_with_tests()
        with super()._area(side) as area:
            yield area

    def _image_with_tests(self) -> FrozenTree:
        tree = self.tree("sandbox")
        image = image_with(tree, packages=_both_sides_have(), programs=self._programs())
        machine = Machine(image=image)
        namespace = machine.kernel.namespace

        def is_there(path: str) -> bool:
            try:
                namespace.resolve(ROOT, namespace.root, path.encode())
            except KernelError:
                return False
            return True

        def link_missing(folder: Path) -> None:
            for entry in sorted(folder.iterdir()):
                relative = entry.relative_to(tree / _ADDED)
                if not is_there(f"{_SITE}/{relative}"):
                    target = f"{SandboxArea.tree}/{_ADDED}/{relative}".encode()
                    place = f"{_SITE}/{relative}".encode()
                    namespace.symlink(ROOT, target, namespace.root, place)
                elif entry.is_dir():
                    link_missing(entry)

        link_missing(tree / _ADDED)
        return machine.kernel.root.freeze()

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        variables = {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
        tools, added = f"{area.tree}/tools", f"{area.tree}/{_ADDED}"
        if side == "native":
            native = self.native()
            python, site = str(native.python), added if self.source_tests else str(native.site)
            variables |= native.variables | {"PYTHONPATH": f"{tools}:{added}:{native.site}"}
        else:
            python, site = _TESTING_PYTHON if self.test_modules else _PYTHON, _SITE
            variables |= {"PYTHONPATH": tools}
        directory = added if self.tests_use_current_directory else area.temporary
        driver = [f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", directory]
        ended, log = run_logged(
            area,
            ["sh", *driver, python, site, test, *self.options],
            cwd=area.tree,
            timeout=_TIMEOUT_SECONDS,
            variables=variables,
        )
        report = area.kept().get(_VERDICTS, b"")
        return judge_file(ended, log, read_verdicts(report))


def _both_sides_have() -> tuple[str, ...]:
    """The packages that the image offers and that are native wheels: tests use other packages."""
    offered = registry().names
    names = (wheel.name.lower().replace("_", "-") for wheel in load_wheels())
    return tuple(name for name in names if name in offered and name not in _TOOLS)


def _link_entries(source: Path, target: Path) -> None:
    """Link to the entries of a directory that another one lacks."""
    for entry in sorted(source.iterdir()):
        if not (target / entry.name).exists():
            (target / entry.name).symlink_to(entry)


def judge_file(ended: Ended, log: bytes, cases: Mapping[str, Verdict]) -> Outcome:
    """The outcome of one file; the end of the log says why cases failed or were skipped."""
    status = 0 if ended.exit_code == _ALL_SKIPPED else ended.exit_code
    outcome = judge(status, log, ended.seconds, timed_out=ended.timed_out)
    detail = outcome.detail or log.decode("utf-8", "replace")[-_SUMMARY_TAIL:]
    if outcome.verdict is Verdict.PASS and Verdict.PASS not in cases.values():
        return Outcome(Verdict.SKIP, f"no test ran\n{detail}", ended.seconds, cases=cases)
    # The driver has run failed cases again already.
    tries = 2 if ended.exit_code == _SOME_FAILED else 1
    return Outcome(outcome.verdict, detail, ended.seconds, tries, cases)


def read_verdicts(report: bytes) -> dict[str, Verdict]:
    """The cases of one file, as `package_report` writes them; the last line on a case counts."""
    cases = {}
    for line in report.decode("utf-8").splitlines():
        verdict, _, name = line.partition(" ")
        cases[name] = Verdict(verdict)
    return cases
