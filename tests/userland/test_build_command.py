"""The command `wasmsand build`, without building the real user space."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder import cli, main

needs_tools = pytest.mark.skipif(
    shutil.which("apt-get") is None or shutil.which("clang-22") is None,
    reason="needs apt and the toolchain",
)


@pytest.fixture
def command(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The command, on the small world instead of this repository."""
    monkeypatch.setattr(cli, "ROOT", world.root)
    monkeypatch.setattr(cli, "RECIPES", world.recipes_folder)
    monkeypatch.setenv("WASMSAND_CACHE", str(world.cache.root.parent))
    monkeypatch.setenv("COLUMNS", "120")
    return world


def test_list_shows_version_licence_and_what_is_not_built(
    command: World, capsys: pytest.CaptureFixture[str]
) -> None:
    command.add("tool")
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["recipe", "version", "built", "size", "licence", "summary"]
    assert lines[1].split() == ["tool", "1.0", "no", "MIT", "a", "test"]


def test_an_unknown_recipe_is_reported_with_the_known_ones(
    command: World, capsys: pytest.CaptureFixture[str]
) -> None:
    command.add("tool")
    assert main(["wool"]) == 1
    error = capsys.readouterr().err
    assert "unknown recipe: 'wool'" in error
    assert "Recipes: tool." in error


def test_packages_have_no_reference_build(
    command: World, capsys: pytest.CaptureFixture[str], edit: Callable[[Path, str, str], None]
) -> None:
    recipe = command.add("later") / "recipe.toml"
    edit(recipe, 'licence = "MIT"', 'licence = "MIT"\nstage = "packages"')
    assert main(["--native", "later"]) == 1
    error = capsys.readouterr().err
    assert "--native does not build packages: later" in error
    assert "wheels" in error


@needs_tools
def test_nothing_is_built_if_only_cached_outputs_are_wanted(
    command: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command.add("tool")
    image = tmp_path / "image"
    assert main(["--if-cached", "--image", str(image), "tool"]) == 0
    assert "not cached: tool" in capsys.readouterr().out
    assert not image.exists()


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for part in ("--list", "--clean", "--rebuild", "--jobs", "examples:", "WASMSAND_CACHE"):
        assert part in text


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--downloads"], ["--list", "--clean"]])
def test_wrong_arguments_end_with_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_missing_toolchain_names_the_packages(
    command: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command.add("tool")
    (command.root / "bin").mkdir()
    (command.root / "bin/apt-get").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(command.root / "bin"))
    assert main(["--no-install"]) == 1
    error = capsys.readouterr().err
    assert "clang-22" in error
    assert "libclang-rt-22-dev-wasm32" in error
    assert "apt-get install" in error


def test_clean_removes_what_was_built_and_keeps_sources(
    command: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.add("tool")
    command.build("tool")
    image = tmp_path / "image"
    image.mkdir()
    assert main(["--clean", "--image", str(image)]) == 0
    assert command.cache.find("tool", command.keys()["tool"]) is None
    assert not image.exists()
    assert list(command.cache.sources.iterdir())
    assert "--downloads" in capsys.readouterr().out
    assert main(["--clean", "--downloads", "--image", str(image)]) == 0
    assert not command.cache.sources.exists()


@needs_tools
@pytest.mark.slow
def test_a_terminated_build_stops_without_a_traceback(command: World, tmp_path: Path) -> None:
    command.add("tool", script='#!/bin/sh\nmkdir -p "$2"; sleep 600 & wait\n')
    program = (
        "import sys; from pathlib import Path; from userland.builder import cli\n"
        f"cli.ROOT = Path({str(command.root)!r})\n"
        f"cli.RECIPES = Path({str(command.recipes_folder)!r})\n"
        f"sys.exit(cli.main(['--image', {str(tmp_path / 'image')!r}]))\n"
    )
    env = dict(os.environ, PYTHONPATH=str(Path(__file__).resolve().parents[2]))
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=env, stderr=subprocess.PIPE, text=True
    )
    logs = command.cache.logs
    deadline = time.monotonic() + 60
    while not any(b"### make" in log.read_bytes() for log in logs.glob("tool-*.log")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped" in error
    assert "Traceback" not in error
    assert list(command.cache.work.iterdir()) == []
    assert not (tmp_path / "image").exists()
