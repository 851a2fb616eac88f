"""The packages' own tests: one file at a time by pytest, beside the native wheels.

Owns how a file of tests is run and judged, and which files of each package are run. Rules: the
native side is the wheel of the same version (`wheels.py`), and the tests are those that the wheel
contains; the image's packages have no tests, so what the wheel has and the image lacks is linked
into them; each test function is a case, by its name and parameters.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from conformance.area import Area
from conformance.exit_status import LOG, judge, run_logged
from conformance.program_suite import ProgramSuite
from conformance.sandboxed import SandboxArea, image_with
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Supplies, Workplace
from conformance.wheels import FILE as WHEELS
from conformance.wheels import NativePackages, native_packages
from userland.builder.keys import file_digest
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs import ROOT, FrozenTree
from wasmsand.machine import Machine

_DRIVER = Path(__file__).with_name("package_driver.sh")
_PLUGIN = Path(__file__).with_name("package_report.py")
_TOOLS = ("_pytest", "hypothesis", "iniconfig", "packaging", "pluggy", "pygments", "pytest")
_TOOL_FILES = ("_hypothesis_pytestplugin.py", "_hypothesis_globals.py", "py.py", "six.py")
_MORE_TOOLS = ("sortedcontainers", "_hypothesis_ftz_detector.py")
_TIMEOUT_SECONDS = 900.0
_VERDICTS = "verdicts"
_SITE = "/usr/lib/python3.14/site-packages"
_ALL_SKIPPED = 5


class PackageSuite(ProgramSuite):
    """The tests of one package."""

    folder: str
    """The package's directory in site-packages."""
    files: tuple[str, ...]
    """Patterns of the files of tests, below `folder`."""
    left_out: tuple[str, ...] = ()
    """Patterns of files that are not run; the class says why."""
    code = ("package_suite.py", "exit_status.py", _DRIVER.name, _PLUGIN.name)

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies)
        self._native: NativePackages | None = None

    def native(self) -> NativePackages:
        """The native side."""
        if self._native is None:
            self._native = native_packages(self.supplies)
        return self._native

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`: the tests come from the wheel on both sides."""
        return [file_digest(WHEELS)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Copy the tools; for the sandbox, also the package's directory of the wheel."""
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
        if side == "sandbox":
            libraries = shutil.ignore_patterns("*.so", "__pycache__", "*.pyc")
            shutil.copytree(site / self.folder, tree / "wheel" / self.folder, ignore=libraries)

    def tests(self) -> Sequence[str]:
        """The files, by their paths in site-packages."""
        root = self.native().site / self.folder
        found = {path for pattern in self.files for path in root.glob(pattern)}
        names = sorted(str(path.relative_to(root.parent)) for path in found if path.is_file())
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
        machine = Machine(image=image_with(tree, packages=(self.name,)))
        namespace = machine.kernel.namespace

        def is_there(path: str) -> bool:
            try:
                namespace.resolve(ROOT, namespace.root, path.encode())
            except KernelError:
                return False
            return True

        def link_missing(folder: Path) -> None:
            for entry in sorted(folder.iterdir()):
                relative = entry.relative_to(tree / "wheel")
                if not is_there(f"{_SITE}/{relative}"):
                    target = f"{SandboxArea.tree}/wheel/{relative}".encode()
                    place = f"{_SITE}/{relative}".encode()
                    namespace.symlink(ROOT, target, namespace.root, place)
                elif entry.is_dir():
                    link_missing(entry)

        link_missing(tree / "wheel" / self.folder)
        return machine.kernel.root.freeze()

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        variables = {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
        tools = f"{area.tree}/tools"
        if side == "native":
            native = self.native()
            python, file = str(native.python), f"{native.site}/{test}"
            variables |= native.variables | {"PYTHONPATH": f"{tools}:{native.site}"}
        else:
            python, file = "/usr/bin/python3", f"{_SITE}/{test}"
            variables |= {"PYTHONPATH": tools}
        ended, log = run_logged(
            area,
            ["sh", f"{area.tree}/{_DRIVER.name}", f"{area.results}/{LOG}", python, file],
            cwd=area.tree,
            timeout=_TIMEOUT_SECONDS,
            variables=variables,
        )
        cases = read_verdicts(area.kept().get(_VERDICTS, b""))
        status = 0 if ended.exit_code == _ALL_SKIPPED else ended.exit_code
        outcome = judge(status, log, ended.seconds, timed_out=ended.timed_out)
        if outcome.verdict is Verdict.PASS and Verdict.PASS not in cases.values():
            return Outcome(Verdict.SKIP, "no test ran", ended.seconds, cases=cases)
        return Outcome(outcome.verdict, outcome.detail, ended.seconds, cases=cases)


def read_verdicts(report: bytes) -> dict[str, Verdict]:
    """The cases of one file, as `package_report` writes them."""
    cases = {}
    for line in report.decode("utf-8").splitlines():
        verdict, _, name = line.partition(" ")
        cases[name] = Verdict(verdict)
    return cases


class NumpySuite(PackageSuite):
    """All tests but those of Fortran, of type checkers and of tools that freeze programs."""

    name = folder = "numpy"
    program = "numpy"
    files = ("**/tests/test_*.py",)
    left_out = (
        "numpy/f2py/*",
        "numpy/typing/*",
        "numpy/_pyinstaller/*",
        "numpy/tests/test_public_api.py",
    )


class PandasSuite(PackageSuite):
    """The parts that programs use most: all would take hours."""

    name = folder = "pandas"
    program = "pandas"
    files = (
        "tests/frame/methods/test_*.py",
        "tests/groupby/test_*.py",
        "tests/io/formats/test_*.py",
        "tests/io/json/test_*.py",
        "tests/io/parser/test_*.py",
        "tests/reductions/test_*.py",
        "tests/resample/test_*.py",
        "tests/reshape/**/test_*.py",
        "tests/series/methods/test_*.py",
        "tests/strings/test_*.py",
        "tests/tools/test_*.py",
        "tests/tslibs/test_*.py",
        "tests/window/test_*.py",
    )


class ScipySuite(PackageSuite):
    """The parts that programs use most."""

    name = folder = "scipy"
    program = "scipy"
    files = tuple(
        f"{part}/tests/test_*.py"
        for part in (
            "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
            "sparse/csgraph", "sparse/linalg", "spatial", "special", "stats",
        )
    )  # fmt: skip


class SklearnSuite(PackageSuite):
    """The parts that programs use most."""

    name = "scikit-learn"
    folder = "sklearn"
    program = "scikit-learn"
    files = tuple(
        f"{part}/tests/test_*.py"
        for part in (
            "cluster", "compose", "decomposition", "ensemble", "feature_extraction", "impute",
            "linear_model", "metrics", "model_selection", "naive_bayes", "neighbors",
            "preprocessing", "svm", "tree",
        )
    )  # fmt: skip


SUITES: dict[str, type[PackageSuite]] = {
    suite.name: suite for suite in (NumpySuite, PandasSuite, ScipySuite, SklearnSuite)
}
