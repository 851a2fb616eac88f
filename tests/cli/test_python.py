"""`wasmsand python`: the sandbox's Python, where the image has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import wasmsand
from wasmsand import Sandbox


def has_python() -> bool:
    with Sandbox() as sandbox:
        return sandbox.commands.run("command -v python3").exit_code == 0


def test_without_python_it_says_so() -> None:
    if has_python():
        pytest.skip("the image has Python")
    result = wasmsand("python", "-c", "print(1)")
    assert result.returncode == 125
    assert result.stderr == (
        b"wasmsand: the programs that are installed here have no python3 among them; "
        b"`wasmsand doctor` lists them\n"
    )


def test_code_scripts_and_input(tmp_path: Path) -> None:
    if not has_python():
        pytest.skip("the image has no Python yet")
    result = wasmsand(
        "python", "-c", "import sys; print(sys.argv[1:], sys.stdin.read())", "a", "-b", stdin=b"in"
    )
    assert (result.stdout, result.returncode) == (b"['a', '-b'] in\n", 0)
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv)\nsys.exit(3)\n")
    result = wasmsand("python", str(script), "--flag", "x")
    assert (result.stdout, result.returncode) == (b"['script.py', '--flag', 'x']\n", 3)
    assert wasmsand("python", stdin=b"print(6 * 7)").stdout == b"42\n"
