"""A test finds the same surroundings on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.area import Area, ordinary_environment
from conformance.native import NativeTemplate
from conformance.sandboxed import image_with, sandbox_area
from conformance.suite import SIDES, Side


@contextmanager
def area(side: Side, tree: Path) -> Iterator[Area]:
    if side == "native":
        with NativeTemplate(tree, tree).area() as native:
            yield native
    else:
        with sandbox_area(image_with(tree)) as sandbox:
            yield sandbox


def run(side: Side, tree: Path, script: str, timeout: float = 30) -> tuple[int, bool, str]:
    """Returns the exit status, whether it took too long, and the file `out` of the results."""
    with area(side, tree) as place:
        ended = place.run(
            ["bash", "-c", f"exec >{place.results}/out 2>&1; {script}"],
            cwd=place.tree,
            env=ordinary_environment(place, cwd=place.tree, programs=[f"{place.tree}/bin"]),
            timeout=timeout,
        )
        printed = place.kept().get("out", b"").decode()
        return ended.exit_code, ended.timed_out, printed.replace(place.tree, "TREE")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin/hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    (folder / "bin/again").symlink_to("hello")
    (folder / "data").write_text("content\n")
    return folder


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("pwd", "TREE\n"),
        ("hello; again; readlink bin/again", "hello\nhello\nhello\n"),
        ("cat data; stat -c '%a %U' data >/dev/null", "content\n"),
        ("id -u; id -G", "1000\n1000 100\n"),
        ("test -t 0 && tty >/dev/null && echo terminal", "terminal\n"),
        ("touch $HOME/a $TMPDIR/b new && echo writable", "writable\n"),
        (
            "env | cut -d= -f1 | grep -v LOCPATH | sort | tr '\\n' ' '",
            "HOME LOGNAME PATH PWD SHELL SHLVL TMPDIR USER _ ",
        ),
        ("perl -e 1 2>/dev/null; echo $?", "127\n"),
        ("test $(stat -c %d /dev/shm) != $(stat -c %d .) && echo other", "other\n"),
    ],
)
def test_both_sides_have_the_same_surroundings(
    side: Side, tree: Path, script: str, printed: str
) -> None:
    assert run(side, tree, script) == (0, False, printed)


@pytest.mark.parametrize("side", SIDES)
def test_the_exit_status_is_reported(side: Side, tree: Path) -> None:
    assert run(side, tree, "exit 77")[0] == 77


@pytest.mark.parametrize("side", SIDES)
def test_a_command_that_takes_too_long_is_killed(side: Side, tree: Path) -> None:
    assert run(side, tree, "echo begun; sleep 100", timeout=2) == (124, True, "begun\n")


@pytest.mark.parametrize("side", SIDES)
def test_a_test_does_not_see_the_files_of_another(side: Side, tree: Path) -> None:
    run(side, tree, "rm data")
    assert run(side, tree, "cat data")[2] == "content\n"
