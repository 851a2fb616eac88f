"""ed: edits from a script, as programs and agents drive it."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("commands", "after"),
    [
        ("2d\nw\nq\n", "one\nthree\n"),
        ("1i\nzero\n.\nw\nq\n", "zero\none\ntwo\nthree\n"),
        ("$a\nfour\nfive\n.\nw\nq\n", "one\ntwo\nthree\nfour\nfive\n"),
        (",s/o/0/g\nw\nq\n", "0ne\ntw0\nthree\n"),
        ("g/t/s/^/> /\nw\nq\n", "one\n> two\n> three\n"),
        ("v/t/d\nw\nq\n", "two\nthree\n"),
        ("1m$\nw\nq\n", "two\nthree\none\n"),
        ("1t2\nw\nq\n", "one\ntwo\none\nthree\n"),
        ("1,2j\nw\nq\n", "onetwo\nthree\n"),
        ("/two/,$c\nrest\n.\nw\nq\n", "one\nrest\n"),
        ("2d\nu\nw\nq\n", "one\ntwo\nthree\n"),
        ("2ka\n1d\n'as/two/marked/\nw\nq\n", "marked\nthree\n"),
        ("r !echo from a command\nw\nq\n", "one\ntwo\nthree\nfrom a command\n"),
        ("s/\\(.\\)\\(.\\)/\\2\\1/\nw\nq\n", "one\ntwo\nhtree\n"),
    ],
)
def test_edits(sandbox: Sandbox, commands: str, after: str) -> None:
    sandbox.files.write("f", "one\ntwo\nthree\n")
    sandbox.commands.run("ed -s f", stdin=commands)
    assert sandbox.files.read("f").decode() == after


def test_printing_and_numbers(sandbox: Sandbox) -> None:
    sandbox.files.write("f", "one\ntwo\n")
    result = sandbox.commands.run("ed f", stdin=",n\n$=\n1l\nw !wc -l\nq\n")
    assert (result.stdout, result.stderr) == ("8\n1\tone\n2\ttwo\n2\none$\n2\n8\n", "")


def test_errors(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("ed missing", stdin="H\n5p\nx\nw /no/where\nq\n")
    assert result.stdout == (
        "Cannot open input file\n?\nInvalid address\n?\nNothing to put\n"
        "?\nCannot open output file\n"
    )
    assert result.stderr == (
        "missing: No such file or directory\n/no/where: No such file or directory\n"
    )
    assert result.exit_code == 1


def test_a_diff_of_kind_ed(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "one\ntwo\nthree\n")
    sandbox.files.write("b", "one\n2\nthree\nfour\n")
    script = "{ diff -e a b; echo w; echo q; } | ed -s a; cmp a b"
    assert sandbox.commands.run(script).exit_code == 0


def test_the_restricted_one_runs_no_commands(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("red -s", stdin="H\n!echo no\n")
    assert (result.stdout, result.exit_code) == ("?\nShell access restricted\n", 1)
