"""`wasmsand warm`: programs are compiled in advance, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wasmsand.machine.image import IMAGE_DIRECTORY, image_programs


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def warm(cache: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wasmsand", "warm", *words],
        env=os.environ | {"WASMSAND_CACHE": str(cache)} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def compiled(cache: Path) -> set[str]:
    """The names of the programs in the cache."""
    names = {program.sha256: program.name for program in image_programs()}
    return {names[path.name.partition("-")[0]] for path in cache.glob("modules/*.cwasm")}


def test_the_named_programs_are_compiled_once(cache: Path) -> None:
    first = warm(cache, "rev", "ul")
    assert first.stdout.startswith("2 programs are ready; 2 were compiled now in "), first.stderr
    assert compiled(cache) == {"rev", "ul"}
    assert warm(cache, "rev", "ul").stdout == "2 programs are ready; nothing was left to do\n"
    again = warm(cache, "ul", "cal")
    assert again.stdout.startswith("2 programs are ready; 1 were compiled now in ")


def test_a_program_has_all_its_names(cache: Path) -> None:
    (program,) = [each for each in image_programs(IMAGE_DIRECTORY) if each.name == "pgrep"]
    other = next(
        name.rsplit("/", 1)[-1] for name in program.all_names if not name.endswith("/pgrep")
    )
    assert warm(cache, other).returncode == 0
    assert compiled(cache) == {"pgrep"}


def test_two_processes_share_the_work(cache: Path) -> None:
    words = [sys.executable, "-m", "wasmsand", "warm", "rev", "ul", "cal", "col"]
    environment = os.environ | {"WASMSAND_CACHE": str(cache)}
    running = [
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert all(text.startswith("4 programs are ready") for text in said)
    assert compiled(cache) == {"rev", "ul", "cal", "col"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing-like-it",), "no program 'nothing-like-it' in the image"),
        (("--all", "bash"), "--all is all programs"),
    ],
)
def test_wrong_arguments(cache: Path, words: tuple[str, ...], message: str) -> None:
    result = warm(cache, *words)
    assert result.returncode == 125
    assert message in result.stderr


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = warm(tmp_path / "file", "rev")
    assert result.returncode == 125
    assert "could not be prepared: rev" in result.stderr
    assert "WASMSAND_CACHE" in result.stderr
