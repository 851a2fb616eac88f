"""`wasmsand python` runs the sandbox's Python as if it were a local one."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import wasmsand
from wasmsand.cli.python import script_index


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


def test_options_of_python_pass_through() -> None:
    assert wasmsand("python", "-V").stdout.startswith(b"Python 3.")
    tool = wasmsand("python", "-m", "json.tool", "--compact", stdin=b'{"a": [1, 2]}')
    assert (tool.stdout, tool.returncode) == (b'{"a":[1,2]}\n', 0)
    code = "import sys; print(sys.flags.isolated, sys.argv)"
    assert wasmsand("python", "-Ic", code, "-c", "x").stdout == b"1 ['-c', '-c', 'x']\n"
    assert wasmsand("python", "-", "a", stdin=b"import sys; print(sys.argv)").stdout == (
        b"['-', 'a']\n"
    )


def test_where_the_script_is_among_the_options_of_python() -> None:
    assert script_index(["a.py", "-c"]) == 0
    assert script_index(["-u", "-W", "ignore", "a.py"]) == 3
    assert script_index(["-Wignore", "-X", "dev", "-i", "a.py"]) == 4
    assert script_index(["--check-hash-based-pycs", "never", "a.py"]) == 2
    for words in (["-c", "a.py"], ["-m", "a.py"], ["-Im", "x", "y"], ["-", "a.py"], ["-V"], []):
        assert script_index(words) is None


def test_a_missing_python_is_reported() -> None:
    result = wasmsand("python", "--env", "PATH=/nowhere", "-c", "print(1)")
    assert result.returncode == 127
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
