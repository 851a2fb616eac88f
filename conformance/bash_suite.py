"""GNU bash's own test suite: its run-* scripts.

Owns how a run-* script is run on either side and judged. Rules: native bash is built
from the recipe's tarball with the recipe's options; each test gets a fresh copy of the
suite's files, a terminal on which nobody types (the suite expects one), the same
environment and the same driver script; both are judged here, by the host's diff with the
options that the run-* script gave.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from conformance.native import hand_over, native_area, run_native_command
from conformance.sandboxed import run_sandbox_command
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Supplies, Workplace, code_digest, product_digest
from wasmsand.kernel.errno import KernelError
from wasmsand.machine import Machine
from wasmsand.machine.files import HostFiles

_TIMEOUT_SECONDS = 120.0
_HELPERS = ("recho", "zecho", "printenv", "xcase")
"""Small programs of the suite, which it finds in its own directory."""
_BUILD_FILES = ("config.h", "version.h", "y.tab.c", "examples/loadables/Makefile")
"""Files of a build tree that tests read."""
_NOT_TESTS = ("run-all", "run-minimal", "run-gprof")
"""As in run-all: these run other scripts."""
_LAYOUT = "1"
"""Raised when `_make_native` keeps other files than before."""
_DRIVER = Path(__file__).with_name("bash_driver.sh")
_CODE = ("bash_suite.py", "bash_driver.sh", "native.py", "sandboxed.py")
_SANDBOX_AREA = "/tmp/suite"

Comparisons = Mapping[str, bytes]
"""What the driver kept, by file name: N.left, N.right, N.options, N.filter, log."""


class BashSuite:
    """The run-* scripts of the tarball that the bash recipe pins."""

    name = "bash"

    def __init__(self, supplies: Supplies) -> None:
        self._supplies = supplies
        self._recipe = supplies.recipe("bash")
        self.title = f"GNU bash {self._recipe.version}"

    def prepare(self) -> None:
        """Build the native bash and both sides' helper programs."""
        self._supplies.require("diff", "grep")
        self._native, self._guest  # noqa: B018  # made when first asked for

    def tests(self) -> Sequence[str]:
        """The run-* scripts in run-all's order."""
        scripts = sorted(path.name for path in (self._native / "tests").glob("run-*"))
        return [name for name in scripts if name not in _NOT_TESTS]

    def key(self, side: Side) -> str:
        """Of what decides the outcomes of a side."""
        ingredients = [code_digest(*_CODE), self._native.name]
        if side == "sandbox":
            ingredients += [product_digest(), self._guest.name]
        return "-".join(ingredients)

    # Making.

    @cached_property
    def _native(self) -> Path:
        """bash, helpers/, tests/ and a few files of the build tree."""
        recipe = self._recipe
        options = recipe.build.configure
        return self._supplies.made(
            "conformance-bash-native",
            [recipe.source.sha256, self._supplies.native_compiler, *options, _LAYOUT],
            self._make_native,
        )

    def _make_native(self, place: Workplace) -> None:
        tree = self._supplies.unpack(self._recipe, place)
        place.run(["./configure", *self._recipe.build.configure], tree)
        place.run(["make", "-j2", "bash"], tree)
        for name in ("bash", *_BUILD_FILES):
            (place.outputs / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, place.outputs / name)
        shutil.copytree(tree / "tests", place.outputs / "tests")
        self._make_helpers("gcc", tree, place)

    @cached_property
    def _guest(self) -> Path:
        """helpers/ as WebAssembly."""
        sysroot = self._supplies.sysroot
        return self._supplies.made(
            "conformance-bash-guest",
            [self._recipe.source.sha256, sysroot.parent.name],
            lambda place: self._make_helpers(
                sysroot / "bin/wasm-cc", self._supplies.unpack(self._recipe, place), place
            ),
        )

    @staticmethod
    def _make_helpers(compiler: str | Path, tree: Path, place: Workplace) -> None:
        (place.outputs / "helpers").mkdir()
        for name in _HELPERS:
            output = place.outputs / "helpers" / name
            place.run([compiler, "-O2", "-w", "-o", output, f"support/{name}.c"], tree)

    # Running.

    def run_native(self, test: str) -> Outcome:
        """One run-* script with the native bash, in a private directory."""
        with native_area() as area:
            build, tests, results = area / "build", area / "tests", area / "results"
            shutil.copytree(self._native / "tests", tests)
            for name in ("bash", *_BUILD_FILES):
                (build / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self._native / name, build / name)
            for name in _HELPERS:
                shutil.copy2(self._native / "helpers" / name, tests / name)
            shutil.copy2(_DRIVER, area / _DRIVER.name)
            for name in ("results", "tmp", "home"):
                (area / name).mkdir()
            hand_over(area)
            result = run_native_command(
                [build / "bash", area / _DRIVER.name, test, results],
                cwd=tests,
                env=_environment(str(area), tmp=str(area / "tmp"), home=str(area / "home")),
                timeout=_TIMEOUT_SECONDS,
                terminal=True,
            )
            kept = {path.name: path.read_bytes() for path in results.iterdir()}
        return judge(kept, result.seconds, timed_out=result.timed_out)

    def run_sandbox(self, test: str) -> Outcome:
        """One run-* script with the sandbox's bash, in a sandbox of its own."""
        area = _SANDBOX_AREA
        machine = Machine()
        try:
            self._upload(machine.files)
            # Another name of the same file: a copy would be another program to load.
            machine.run([b"ln", b"/bin/bash", f"{area}/build/bash".encode()], environ={}, cwd="/")
            result = run_sandbox_command(
                machine,
                [f"{area}/build/bash", f"{area}/{_DRIVER.name}", test, f"{area}/results"],
                cwd=f"{area}/tests",
                env=_environment(area, tmp="/tmp", home="/home/user"),
                timeout=_TIMEOUT_SECONDS,
            )
            kept = _download(machine.files, f"{area}/results")
        finally:
            machine.close()
        return judge(kept, result.seconds, timed_out=result.timed_out)

    def _upload(self, files: HostFiles) -> None:
        area = _SANDBOX_AREA
        tests = self._native / "tests"
        for path in tests.rglob("*"):
            if path.is_file():
                mode = path.stat().st_mode & 0o777
                files.write(f"{area}/tests/{path.relative_to(tests)}", path.read_bytes(), mode=mode)
        for name in _HELPERS:
            program = (self._guest / "helpers" / name).read_bytes()
            files.write(f"{area}/tests/{name}", program, mode=0o755)
        for name in _BUILD_FILES:
            files.write(f"{area}/build/{name}", (self._native / name).read_bytes())
        files.write(f"{area}/{_DRIVER.name}", _DRIVER.read_bytes())
        files.mkdir(f"{area}/results")


def _environment(area: str, *, tmp: str, home: str) -> dict[str, str]:
    """The whole environment of a test; the sandbox adds nothing to these names."""
    return {
        "PATH": f"{area}/tests:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": tmp,
        "PWD": f"{area}/tests",
        "THIS_SH": f"{area}/build/bash",
        "BUILD_DIR": f"{area}/build",
    }


def _download(files: HostFiles, folder: str) -> dict[str, bytes]:
    kept = {}
    for entry in files.list(folder):
        # A process left behind by the test may still be tidying up.
        with suppress(KernelError):
            kept[entry.name] = files.read(f"{folder}/{entry.name}")
    return kept


# Judging.


def judge(kept: Comparisons, seconds: float, *, timed_out: bool) -> Outcome:
    """The verdict that the run-* script's own comparisons would have come to."""
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
    """What the host's diff prints, after the filter that the script used."""
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
