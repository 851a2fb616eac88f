"""The wheels contain the built programs, portable and compiled: `pip install wasmsand` works in a
fresh environment, without a compiler, a checkout or a network, and its first use compiles nothing.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tests.wheel.installation import (
    Installation,
    build_wheels,
    new_installation,
    shared_directory,
)
from wasmsand.engine.shipped_modules import read_index
from wasmsand.engine.wasmtime.bindings import RELEASE
from wasmsand.machine.image import IMAGE_DIRECTORY, image_programs

LARGEST = 100_000_000


def the(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found


def requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    return [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]


def test_the_wheel_holds_the_programs_the_types_and_the_licences(wheels: Path) -> None:
    wheel = the(wheels, "wasmsand-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "wasmsand/_image/manifest.json" in names
    assert [name for name in names if name.startswith("wasmsand/_image/") and ".wasm" in name]
    assert not [name for name in names if name.endswith(".cwasm")]
    if (IMAGE_DIRECTORY.parent / "_playground").is_dir():  # `make web` has built the page
        assert "wasmsand/_playground/index.html" in names
        assert "wasmsand/_playground/licences.txt" in names
    assert "wasmsand/py.typed" in names
    assert [name for name in names if name.endswith("/licenses/LICENSE")]
    assert [name for name in names if name.endswith("/licenses/NOTICE")]
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 2, f"only the package and its metadata: {tops}"


def test_it_requires_the_compiled_programs_of_the_same_version(wheels: Path) -> None:
    assert "wasmsand-native==0.1.0" in requirements(the(wheels, "wasmsand-*.whl"))


def test_the_compiled_programs_require_the_release_that_compiled_them(wheels: Path) -> None:
    for wheel in wheels.glob("wasmsand_native-*.whl"):
        assert requirements(wheel) == [f"wasmtime=={RELEASE}"]


def test_a_platform_has_its_own_wheel_and_the_others_an_empty_one(wheels: Path) -> None:
    compiled = the(wheels, "wasmsand_native-*-py3-none-manylinux*.whl")
    names = zipfile.ZipFile(compiled).namelist()
    modules = [name for name in names if name.endswith(".cwasm")]
    programs = image_programs(IMAGE_DIRECTORY)
    assert len(modules) == len(programs) + 1, "one for each program, and the probe"
    assert "wasmsand_native/LICENCES.md" in names
    empty = zipfile.ZipFile(the(wheels, "wasmsand_native-*-py3-none-any.whl")).namelist()
    assert [name for name in empty if ".dist-info" not in name] == ["wasmsand_native/__init__.py"]


def test_no_wheel_is_larger_than_a_package_index_accepts(wheels: Path) -> None:
    for wheel in wheels.glob("*.whl"):
        assert wheel.stat().st_size < LARGEST, wheel.name


def test_the_installed_package_is_the_wheels(installed: Installation, tmp_path: Path) -> None:
    code = "import wasmsand; print(wasmsand.__file__)"
    result = installed.run("-c", code, home=tmp_path)
    assert result.stdout.startswith(str(installed.commands.parent)), result.stderr


@pytest.mark.parametrize(
    ("command", "expected"), [("echo hi", "hi\n"), ("python3 -c 'print(6 * 7)'", "42\n")]
)
def test_the_first_use_compiles_nothing(
    installed: Installation, tmp_path: Path, command: str, expected: str
) -> None:
    result = installed.wasmsand("run", command, home=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == (expected, "", 0)
    assert not list(tmp_path.rglob("*.cwasm")), "the files of the package are used as they are"


@pytest.mark.parametrize("command", ["echo hi", "python3 -c 'print(6 * 7)'"])
def test_the_first_use_takes_less_than_half_a_second(
    installed: Installation, tmp_path: Path, command: str
) -> None:
    """CPU time, which other programs of the machine hardly change, of whole processes: each has an
    empty cache. The fastest of three counts."""
    taken = []
    for number in range(3):
        home = tmp_path / str(number)
        home.mkdir()
        before = os.times()
        result = installed.wasmsand("run", command, home=home)
        after = os.times()
        assert result.returncode == 0, result.stderr
        taken.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    assert min(taken) < 0.5


def test_threads_and_copies_of_programs_compile_nothing(
    installed: Installation, tmp_path: Path
) -> None:
    command = (
        "python3 -c 'import threading; t = threading.Thread(target=print, args=[1]); t.start()'; "
        "cp /usr/bin/sed mine; echo a | ./mine s/a/b/"
    )
    result = installed.wasmsand("run", command, home=tmp_path)
    assert (result.stdout, result.stderr) == ("1\nb\n", "")


def test_a_confined_process_compiles_nothing(installed: Installation, tmp_path: Path) -> None:
    code = """
from wasmsand import Sandbox
with Sandbox(isolation="process") as sandbox:
    print(sandbox.commands.run("echo hi | tr a-z A-Z; python3 -c 'print(1)'"))
"""
    result = installed.run("-c", code, home=tmp_path)
    assert "stdout='HI\\n1\\n', stderr='', exit_code=0" in result.stdout, result.stderr


def test_doctor_says_that_all_programs_came_compiled(
    installed: Installation, tmp_path: Path
) -> None:
    doctor = installed.wasmsand("doctor", home=tmp_path)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    total = len(image_programs(IMAGE_DIRECTORY))
    assert f"compiled programs: all {total} are ready" in doctor.stdout
    assert f"{total} came compiled with the package" in doctor.stdout
    assert f"cache: {tmp_path}/.cache/wasmsand" in doctor.stdout


def test_the_kernel_comes_compiled(installed: Installation, tmp_path: Path) -> None:
    script = (
        "from wasmsand import Sandbox\n"
        "from wasmsand.compiled_kernel import chosen\n"
        "with Sandbox() as sandbox:\n"
        "    print(chosen().is_used, sandbox.commands.run('echo hi').stdout, end='')\n"
    )
    done = installed.run("-c", script, home=tmp_path)
    assert done.stdout == "True hi\n", done.stderr
    variables = {"WASMSAND_COMPILED_KERNEL": "never"}
    done = installed.run("-c", script, home=tmp_path, variables=variables)
    assert done.stdout == "False hi\n", done.stderr


def test_warm_checks_what_came_compiled(installed: Installation, tmp_path: Path) -> None:
    warm = installed.wasmsand("warm", home=tmp_path)
    total = len(image_programs(IMAGE_DIRECTORY))
    expected = f"{total} programs are ready; {total} came compiled and were checked in "
    assert warm.stdout.startswith(expected), warm.stderr
    again = installed.wasmsand("warm", home=tmp_path)
    assert again.stdout == f"{total} programs are ready; nothing was left to do\n"


def test_without_the_compiled_programs_they_are_compiled(
    installed: Installation, tmp_path: Path
) -> None:
    """The same package with another release of wasmtime."""
    code = """
import dataclasses, wasmsand.engine.shipped_modules as shipped
(index,) = shipped.installed_indexes()
shipped.installed_indexes = lambda: (dataclasses.replace(index, release="0"),)
from wasmsand.cli import main
main(["run", "true"])
"""
    variables = {"WASMSAND_COMPILE": "in-process"}
    result = installed.run("-c", code, home=tmp_path, variables=variables)
    assert "they are for wasmtime 0, and wasmtime" in result.stderr
    assert "wasmsand warm" in result.stderr
    assert "compiling bash for this machine (once)" in result.stderr
    assert len(list(tmp_path.rglob("*.cwasm"))) == 1


def test_build_says_that_it_needs_a_checkout(installed: Installation, tmp_path: Path) -> None:
    result = installed.wasmsand("build", home=tmp_path)
    assert result.returncode == 125
    assert "needs a source checkout" in result.stderr


def test_the_command_is_installed(installed: Installation) -> None:
    script = installed.commands / "wasmsand"
    environment = {"PATH": os.environ["PATH"]}
    result = subprocess.run([script, "--version"], env=environment, capture_output=True, text=True)
    assert result.stdout == "wasmsand 0.1.0\n"


def test_all_distributions_have_one_version(repository: Path) -> None:
    def project(path: str) -> dict[str, object]:
        content = (repository / path / "pyproject.toml").read_text(encoding="utf-8")
        found: dict[str, object] = tomllib.loads(content)["project"]
        return found

    version = project(".")["version"]
    for name in ("wasmsand-packages", "wasmsand-native", "wasmsand-packages-native"):
        assert project(f"packaging/{name}")["version"] == version
    assert project("packaging/wasmsand-packages")["dependencies"] == [f"wasmsand=={version}"]


@pytest.mark.slow
def test_the_packages_come_compiled_too(
    wheels: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if "python-full" not in {program.name for program in image_programs()}:
        pytest.skip("the stage of packages is not built: run `make packages`")
    directory = shared_directory(tmp_path_factory, "wheels")
    build_wheels(directory, "wasmsand-packages", "wasmsand-packages-native")
    both = new_installation(tmp_path / "both", directory)
    both.install("wasmsand-packages")
    (tmp_path / "home").mkdir()
    code = "python3 -c 'import numpy; print(numpy.eye(1))'"
    result = both.wasmsand("run", "--package", "numpy", code, home=tmp_path / "home")
    assert (result.stdout, result.stderr) == ("[[1.]]\n", "")
    index = read_index(both.packages / "wasmsand_packages_native")
    assert index is not None
    assert index.release == RELEASE
