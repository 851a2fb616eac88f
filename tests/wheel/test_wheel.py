"""A wheel contains the built programs: it works in a fresh environment, without a compiler, a
checkout or a network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` builds it."""
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, "."],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    (wheel,) = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def fresh_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new virtual environment with the wheel in it.

    The dependencies are those of this environment, so that nothing is downloaded. Python does not
    read the path files of a directory that a path file names, so this environment's own (editable)
    wasmsand is not visible.
    """
    directory = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = directory / "bin" / "python"
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    subprocess.run(install, check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("platlib") + "\n")
    return python


def run_bare(python: Path, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run without PATH, checkout or caches, so that only the installed package is available."""
    return subprocess.run(
        [python, "-I", *words],
        cwd="/",
        env={"HOME": str(cache), "PATH": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_the_wheel_holds_the_programs_the_types_and_the_licences(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "wasmsand/_image/manifest.json" in names
    assert [name for name in names if name.startswith("wasmsand/_image/") and ".wasm" in name]
    assert "wasmsand/py.typed" in names
    assert [name for name in names if name.endswith("/licenses/LICENSE")]
    assert [name for name in names if name.endswith("/licenses/NOTICE")]
    assert wheel.name.endswith("-py3-none-any.whl")
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 2, f"only the package and its metadata: {tops}"


def test_the_installed_package_is_the_wheels(fresh_python: Path, tmp_path: Path) -> None:
    result = run_bare(
        fresh_python, "-c", "import wasmsand; print(wasmsand.__file__)", cache=tmp_path
    )
    assert result.stdout.startswith(str(fresh_python.parent.parent)), result.stderr


def test_doctor_prepares_and_run_works_without_a_compiler(
    fresh_python: Path, tmp_path: Path
) -> None:
    doctor = run_bare(fresh_python, "-m", "wasmsand", "doctor", cache=tmp_path)
    assert doctor.returncode == 0, doctor.stderr
    command = "echo hello | tr a-z A-Z; ls / > /dev/null"
    result = run_bare(fresh_python, "-m", "wasmsand", "run", command, cache=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == ("HELLO\n", "", 0)


def test_build_says_that_it_needs_a_checkout(fresh_python: Path, tmp_path: Path) -> None:
    result = run_bare(fresh_python, "-m", "wasmsand", "build", cache=tmp_path)
    assert result.returncode == 125
    assert "needs a source checkout" in result.stderr


def test_the_command_is_installed(fresh_python: Path) -> None:
    script = fresh_python.parent / "wasmsand"
    environment = {"PATH": os.environ["PATH"]}
    result = subprocess.run([script, "--version"], env=environment, capture_output=True, text=True)
    assert result.stdout == "wasmsand 0.1.0\n"


@pytest.fixture(scope="module")
def packages_wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second wheel, built as `make wheel` builds it."""
    if not (repository / "src/wasmsand_packages/_image").is_dir():
        pytest.skip("the stage of packages is not built: run `make packages`")
    directory = tmp_path_factory.mktemp("packages")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory,
         repository / "packaging/wasmsand-packages"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    (wheel,) = directory.glob("*.whl")
    return wheel


def test_both_wheels_have_one_version(repository: Path) -> None:
    first, second = (
        tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for file in (
            repository / "pyproject.toml",
            repository / "packaging/wasmsand-packages/pyproject.toml",
        )
    )
    assert second["version"] == first["version"]
    assert second["dependencies"] == [f"wasmsand=={first['version']}"]


def test_the_second_wheel_adds_its_packages(
    fresh_python: Path, packages_wheel: Path, tmp_path: Path
) -> None:
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([fresh_python, *install, packages_wheel], check=True)
    command = (
        "/usr/libexec/python3-full -c 'import sys; print(len(sys.builtin_module_names) > 100)'"
    )
    result = run_bare(fresh_python, "-m", "wasmsand", "run", command, cache=tmp_path)
    assert (result.stdout, result.returncode) == ("True\n", 0), result.stderr
