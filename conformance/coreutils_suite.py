"""GNU coreutils' own test suite: its shell tests that need no root.

Owns how such a test is run on either side and judged. Rules: native coreutils are built
from the recipe's tarball with the recipe's options; each test gets a fresh tree with the
same test files, a terminal, the same environment and the same driver script, and is
judged by its exit status. Tests written in Perl are not run: there is no Perl in the sandbox.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from conformance.cross import cross_made
from conformance.native import hand_over, native_area, run_native_command
from conformance.sandboxed import run_sandbox_command
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Supplies, Workplace, code_digest, product_digest
from userland.builder.recipe import Program, Recipe
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Snapshot, TreeFs
from wasmsand.machine import Machine

_TIMEOUT_SECONDS = 60.0
_GETLIMITS = "src/getlimits"
"""A program of the suite, which tells tests the limits of integer types."""
_CONFIGURATION = "lib/config.h"
_BUILD_FILES = (_CONFIGURATION, "src/coreutils.h")
"""Files that a build makes and tests read."""
_SOURCE_FILES = ("init.cfg", "src/remove.c", "src/stty.c", "src/tail.c")
"""Files of the source, besides tests/, that tests read."""
_LAYOUT = "1"
"""Raised when `_make_native` keeps other files than before."""
_DRIVER = Path(__file__).with_name("coreutils_driver.sh")
_CODE = ("coreutils_suite.py", _DRIVER.name, "native.py", "sandboxed.py", "cross.py")
_SANDBOX_AREA = "/tmp/suite"
_LOG = f"{_SANDBOX_AREA}/log"
_LOG_TAIL = 15_000
"""Characters of a failed test's log that are kept: its end tells most."""
_SKIPPED = 77
_SETUP_FAILED = 99


class CoreutilsSuite:
    """The shell tests of the tarball that the coreutils recipe pins."""

    name = "coreutils"

    def __init__(self, supplies: Supplies) -> None:
        self._supplies = supplies
        self._recipe = supplies.recipe("coreutils")
        self.title = f"GNU coreutils {self._recipe.version}"

    def prepare(self) -> None:
        """Build the native coreutils, and for both sides what only the suite needs."""
        self._native, self._guest  # noqa: B018  # made when first asked for

    def tests(self) -> Sequence[str]:
        """The shell tests of the suite's list, without those of the list for root."""
        text = (self._native / "tests/local.mk").read_text("utf-8")
        root = set(make_list(text, "all_root_tests"))
        return [
            name
            for name in make_list(text, "all_tests")
            if name.endswith(".sh") and name not in root
        ]

    def key(self, side: Side) -> str:
        """Of what decides the outcomes of a side."""
        ingredients = [code_digest(*_CODE), self._native.name]
        if side == "sandbox":
            ingredients += [product_digest(), self._guest.name]
        return "-".join(ingredients)

    # Making.

    @cached_property
    def _native(self) -> Path:
        """src/coreutils, src/getlimits, tests/ and a few files more of a build tree."""
        recipe = self._recipe
        return self._supplies.made(
            "conformance-coreutils-native",
            [
                recipe.source.sha256,
                self._supplies.native_compiler,
                *recipe.build.configure,
                *recipe.build.make,
                _LAYOUT,
            ],
            self._make_native,
        )

    def _make_native(self, place: Workplace) -> None:
        tree = self._supplies.unpack(self._recipe, place)
        # Root may build here; the tests never run as root.
        root = {"FORCE_UNSAFE_CONFIGURE": "1"}
        place.run(["./configure", *self._recipe.build.configure], tree, root)
        place.run(["make", "-j2", *self._recipe.build.make], tree)
        place.run(["strip", "src/coreutils", _GETLIMITS], tree)
        for name in ("src/coreutils", _GETLIMITS, *_BUILD_FILES, *_SOURCE_FILES):
            _copy(tree / name, place.outputs / name)
        shutil.copytree(tree / "tests", place.outputs / "tests")

    @cached_property
    def _guest(self) -> Path:
        """getlimits.wasm, and the files of a build tree for the sandbox."""
        variant = _getlimits_recipe(self._recipe)
        return cross_made(self._supplies, "conformance-coreutils-guest", variant, _BUILD_FILES)

    # Running.

    def run_native(self, test: str) -> Outcome:
        """One test with the native coreutils, in a private directory."""
        with native_area() as area:
            tree = area / "coreutils"
            for name, source in self._files(test).items():
                _copy(source, tree / name)
            for name in ("src/coreutils", _GETLIMITS, *_BUILD_FILES):
                _copy(self._native / name, tree / name)
            for name in self._program_names:
                (tree / "src" / name).symlink_to("coreutils")
            _copy(_DRIVER, area / _DRIVER.name)
            (area / "tmp").mkdir()
            (area / "home").mkdir()
            hand_over(area)
            log = area / "log"
            result = run_native_command(
                ["bash", area / _DRIVER.name, test, log],
                cwd=tree,
                env=self._environment(str(tree), tmp=str(area / "tmp"), home=str(area / "home")),
                timeout=_TIMEOUT_SECONDS,
                terminal=True,
            )
            printed = log.read_bytes() if log.exists() else b""
        return judge(result.exit_code, printed, result.seconds, timed_out=result.timed_out)

    def run_sandbox(self, test: str) -> Outcome:
        """One test in a machine of its own."""
        tree = f"{_SANDBOX_AREA}/coreutils"
        machine = Machine(image=self._image)
        try:
            _mount_second_file_system(machine)
            for name, source in self._files(test).items():
                machine.files.write(f"{tree}/{name}", source.read_bytes())
            result = run_sandbox_command(
                machine,
                ["bash", f"{_SANDBOX_AREA}/{_DRIVER.name}", test, _LOG],
                cwd=tree,
                env=self._environment(tree, tmp="/tmp", home="/home/user"),
                timeout=_TIMEOUT_SECONDS,
            )
            printed = machine.files.read(_LOG) if machine.files.exists(_LOG) else b""
        finally:
            machine.close()
        return judge(result.exit_code, printed, result.seconds, timed_out=result.timed_out)

    @cached_property
    def _image(self) -> Snapshot:
        """The user space, with what all tests use."""
        tree = f"{_SANDBOX_AREA}/coreutils"
        machine = Machine()
        machine.files.write(f"{_SANDBOX_AREA}/{_DRIVER.name}", _DRIVER.read_bytes())
        for name in _BUILD_FILES:
            machine.files.write(f"{tree}/{name}", (self._guest / name).read_bytes())
        getlimits = (self._guest / "getlimits.wasm").read_bytes()
        machine.files.write(f"{tree}/{_GETLIMITS}", getlimits, mode=0o755)
        links = [("/usr/bin/coreutils", "coreutils")]
        links += [("coreutils", name) for name in self._program_names]
        namespace = machine.kernel.namespace
        for target, name in links:
            path = f"{tree}/src/{name}".encode()
            namespace.symlink(machine.identity.credentials(), target.encode(), namespace.root, path)
        return machine.kernel.root.freeze()

    def _files(self, test: str) -> Mapping[str, Path]:
        """What a test needs of the source: what all tests use, and its own directory."""
        tests = self._native / "tests"
        folders = (tests, (self._native / test).parent)
        found = [path for folder in folders for path in folder.iterdir() if path.is_file()]
        found += [self._native / name for name in _SOURCE_FILES]
        return {str(path.relative_to(self._native)): path for path in found}

    @cached_property
    def _program_names(self) -> tuple[str, ...]:
        """Names in src/: before it is installed, install is called ginstall."""
        names = set(self._recipe.programs[0].names) - {"coreutils", "install"}
        return tuple(sorted(names | {"ginstall"}))

    def _environment(self, tree: str, *, tmp: str, home: str) -> dict[str, str]:
        """What the suite's Makefile gives to every test, and an ordinary user's rest."""
        version = self._recipe.version
        return {
            "PATH": f"{tree}/src:/usr/local/bin:/usr/bin:/bin",
            "HOME": home,
            "USER": "user",
            "LOGNAME": "user",
            "PWD": tree,
            "TMPDIR": tmp,
            "SHELL": "/bin/bash",
            "VERBOSE": "yes",
            "VERSION": version,
            "PACKAGE_VERSION": version,
            "LOCALE_FR": "none",
            "LOCALE_FR_UTF8": "none",
            "abs_top_builddir": tree,
            "abs_top_srcdir": tree,
            "abs_srcdir": tree,
            "srcdir": ".",
            "top_srcdir": ".",
            "built_programs": " ".join([*self._program_names, "coreutils"]),
            "fail": "0",
            "host_os": "linux-gnu",
            "host_triplet": "x86_64-pc-linux-gnu",
            "CONFIG_HEADER": f"{tree}/{_CONFIGURATION}",
            "CC": "gcc",
            "AWK": "awk",
            "EGREP": "grep -E",
            "EXEEXT": "",
            "MAKE": "make",
            "PERL": "perl",
        }


def _mount_second_file_system(machine: Machine) -> None:
    """On /dev/shm, where Linux has one: tests move files from one to the other."""
    builder = ImageBuilder()
    builder.add_dir(b"/", 0o1777)
    kernel = machine.kernel
    namespace = kernel.namespace
    place = namespace.resolve(ROOT, namespace.root, b"/dev/shm")
    tree = TreeFs(builder.build(), kernel.limits, kernel.clock.realtime)
    namespace.mount(place, tree, source=b"tmpfs")


def make_list(makefile: str, variable: str) -> list[str]:
    """The words of a variable that is set once, over several lines."""
    found = re.search(rf"^{variable}[ \t]*=((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    if found is None:
        raise ValueError(f"tests/local.mk does not set {variable}")
    return [word for word in found[1].replace("\\\n", " ").split() if not word.startswith("$")]


def judge(exit_code: int, printed: bytes, seconds: float, *, timed_out: bool) -> Outcome:
    """The verdict as automake has it."""
    log = printed.decode("utf-8", "replace")[-_LOG_TAIL:]
    if timed_out:
        return Outcome(Verdict.FAIL, f"timed out after {_TIMEOUT_SECONDS:.0f} s\n{log}", seconds)
    if exit_code == 0:
        return Outcome(Verdict.PASS, "", seconds)
    if exit_code == _SKIPPED:
        return Outcome(Verdict.SKIP, _reason(log), seconds)
    what = "could not be set up" if exit_code == _SETUP_FAILED else f"exit status {exit_code}"
    return Outcome(Verdict.FAIL, f"{what}\n{log}", seconds)


def _reason(log: str) -> str:
    """Why a test was skipped, as it said."""
    lines = [line for line in log.splitlines() if "skipped test:" in line]
    return lines[-1] + "\n" if lines else log


def _getlimits_recipe(recipe: Recipe) -> Recipe:
    """The recipe, with getlimits as its only program."""
    program = Program(
        name="getlimits",
        binary=_GETLIMITS,
        names=("getlimits",),
        fork=False,
        fork_through_pointers=None,
        optimise="O1",
    )
    return replace(recipe, programs=(program,))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
