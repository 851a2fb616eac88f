"""`wasmsand python` runs the sandbox's Python as if it were a local one."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import wasmsand


def test_code_gets_arguments_and_input() -> None:
    code = "import sys; print(sys.argv[1:], sys.stdin.read())"
    result = wasmsand("python", "-c", code, "a", "-b", stdin=b"in")
    assert (result.stdout, result.returncode) == (b"['a', '-b'] in\n", 0)


def test_a_script_of_this_machine_is_copied(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv)\nsys.exit(3)\n")
    result = wasmsand("python", str(script), "--flag", "x")
    assert (result.stdout, result.returncode) == (b"['script.py', '--flag', 'x']\n", 3)


def test_code_is_read_from_standard_input() -> None:
    assert wasmsand("python", stdin=b"print(6 * 7)").stdout == b"42\n"


def test_a_missing_python_is_reported() -> None:
    result = wasmsand("python", "--env", "PATH=/nowhere", "-c", "print(1)")
    assert result.returncode == 125
    assert result.stderr == (
        b"wasmsand: python3 was not found in the sandbox; "
        b"`wasmsand doctor` lists the installed programs\n"
    )


def test_packages_are_named_by_a_flag() -> None:
    code = "import sqlite3; print(sqlite3.__name__)"
    assert wasmsand("python", "-p", "sqlite3", "-c", code).stdout == b"sqlite3\n"
    wrong = wasmsand("python", "--package", "no-such-package", "-c", "print(1)")
    assert wrong.returncode == 125
    assert wrong.stderr.startswith(b"wasmsand: there is no package 'no-such-package' in the image")
