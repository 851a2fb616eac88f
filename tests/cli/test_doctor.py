"""`wasmsand doctor`, and the messages if the user space is missing or damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import wasmsand
from wasmsand.compiled_kernel import chosen
from wasmsand.machine.packages.offered import registry


def run_copy(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy of the package in `source`, outside of any checkout."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=source,
        env={"PYTHONPATH": str(source), "HOME": str(source), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def without_image(repository: Path, tmp_path: Path) -> Path:
    package = repository / "src" / "wasmsand"
    ignored = shutil.ignore_patterns("_image", "_v86*", "__pycache__")
    shutil.copytree(package, tmp_path / "wasmsand", ignore=ignored)
    return tmp_path


@pytest.fixture
def with_damaged_image(repository: Path, without_image: Path) -> Path:
    image = without_image / "wasmsand" / "_image"
    shutil.copytree(repository / "src" / "wasmsand" / "_image", image)
    module = next(image.glob("*.wasm"))
    module.write_bytes(module.read_bytes()[:-1] + b"\xff")
    return without_image


def test_a_healthy_installation() -> None:
    result = wasmsand("doctor")
    lines = result.stdout.decode().splitlines()
    assert result.returncode == 0
    assert all(line.startswith("ok ") for line in lines)
    assert "bash" in lines[2]
    assert "coreutils" in lines[2]
    assert f"ok    kernel: {chosen().form}" in lines
    assert lines[-2].startswith("ok    first command: ")
    assert lines[-1].startswith("ok    active barriers of isolation='process': ")


def test_doctor_names_the_native_packages_of_the_image() -> None:
    text = " ".join(wasmsand("doctor").stdout.decode().split())
    found = registry().all()
    assert f"Python packages: {len(found)} in the image; native ones" in text
    native = [package for package in found if package.is_native]
    for package in native:
        assert f"{package.key} {package.version}" in text
    if not native:
        assert "are not installed: pip install wasmsand-packages" in text


def test_doctor_says_what_to_do_without_an_image(without_image: Path) -> None:
    result = run_copy(without_image, "-m", "wasmsand", "doctor")
    assert result.returncode == 1
    assert "wrong no user space" in result.stdout
    assert "reinstall wasmsand" in result.stdout.replace("\n", " ")


def test_run_says_what_to_do_without_an_image(without_image: Path) -> None:
    result = run_copy(without_image, "-m", "wasmsand", "run", "true")
    assert result.returncode == 125
    assert result.stderr.startswith("wasmsand: no user space")


def test_sandbox_raises_image_missing_error_without_an_image(without_image: Path) -> None:
    script = (
        "from wasmsand import ImageMissingError, Sandbox\n"
        "try:\n    Sandbox()\n"
        "except ImageMissingError as error:\n    print(error)\n"
    )
    result = run_copy(without_image, "-c", script)
    assert result.stdout.startswith("no user space"), result.stderr


def test_doctor_finds_a_damaged_program(with_damaged_image: Path) -> None:
    result = run_copy(with_damaged_image, "-m", "wasmsand", "doctor")
    assert result.returncode == 1
    assert "does not match the hash in its manifest" in result.stdout.replace("\n", " ")
