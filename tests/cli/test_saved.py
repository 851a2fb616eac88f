"""`--load`, `--save` and `wasmsand load`: sandboxes in files of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import wasmsand
from wasmsand import Sandbox


def test_a_sandbox_goes_on_from_file_to_file(tmp_path: Path) -> None:
    saved = str(tmp_path / "m.wsand")
    first = wasmsand("run", "--save", saved, "echo one > a.txt; exit 3")
    assert (first.returncode, first.stderr) == (3, b"")
    second = wasmsand("run", "--load", saved, "--save", saved, "echo two >> a.txt")
    assert second.returncode == 0
    assert wasmsand("load", saved, "cat a.txt").stdout == b"one\ntwo\n"
    assert wasmsand("load", saved, "--", "wc", "-l", "a.txt").stdout == b"2 a.txt\n"
    wasmsand("load", saved, "rm a.txt")  # not saved
    assert wasmsand("load", saved, stdin=b"cat a.txt").stdout == b"one\ntwo\n"
    code = "print(open('a.txt').read().split())"
    assert wasmsand("python", "--load", saved, "-c", code).stdout == b"['one', 'two']\n"
    assert wasmsand("shell", "--load", saved, stdin=b"tail -n 1 a.txt").stdout == b"two\n"


def test_files_of_the_api_can_be_loaded(tmp_path: Path) -> None:
    saved = tmp_path / "m.wsand"
    with Sandbox() as sandbox:
        sandbox.env.set("GREETING", "hello")
        sandbox.python().run("x = 1")
        sandbox.save(saved)
    result = wasmsand("load", "--save", str(saved), str(saved), "echo $GREETING > a.txt")
    assert (result.returncode, result.stderr) == (0, b"")
    with Sandbox.load(saved) as sandbox:
        assert sandbox.files.read("a.txt") == b"hello\n"
        assert sandbox.sessions[0].run("x").value == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot load"), (b"junk", "not a saved sandbox"), (b"", "not a saved sandbox")],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "m.wsand"
    if content is not None:
        file.write_bytes(content)
    result = wasmsand("load", str(file), "true")
    assert (result.returncode, result.stdout) == (125, b"")
    assert message.encode() in result.stderr
    assert result.stderr.count(b"\n") == 1


def test_an_old_file_stays_if_saving_fails(tmp_path: Path) -> None:
    result = wasmsand("run", "--save", str(tmp_path / "no" / "m.wsand"), "echo done")
    assert (result.returncode, result.stdout) == (125, b"done\n")
    assert b"cannot save" in result.stderr
