"""envsubst, gettext and ngettext."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("arguments", "text", "stdout"),
    [
        ("", "Hello $NAME, ${NAME}!\n", "Hello Ada, Ada!\n"),
        ("", "unset: [$NOT_SET]\n", "unset: []\n"),
        ("'$NAME'", "$NAME and $HOME\n", "Ada and $HOME\n"),
        ("'$NAME $HOME'", "$NAME $HOME $PATH\n", "Ada /home/user $PATH\n"),
        ("", "${NAME:-default} costs 5$\n", "${NAME:-default} costs 5$\n"),
        ("", "é $NAME\n", "é Ada\n"),
    ],
)
def test_envsubst(sandbox: Sandbox, arguments: str, text: str, stdout: str) -> None:
    result = sandbox.commands.run(f"envsubst {arguments}", stdin=text, env={"NAME": "Ada"})
    assert (result.stdout, result.stderr, result.exit_code) == (stdout, "", 0)


def test_the_variables_of_a_text(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("envsubst -v '$A ${B}c $A'")
    assert result.stdout == "A\nB\nA\n"


def test_a_large_text(sandbox: Sandbox) -> None:
    script = "export X=abc; for i in {1..20000}; do echo 'line $X'; done | envsubst | uniq -c"
    assert sandbox.commands.run(script).stdout.split() == ["20000", "line", "abc"]


def test_messages_are_those_of_the_program(sandbox: Sandbox) -> None:
    # There are no translations; scripts that ask for them get their own words back.
    script = (
        "gettext 'a file'; echo; ngettext 'one file' 'many files' 3; echo; gettext -s two words"
    )
    assert sandbox.commands.run(script).stdout == "a file\nmany files\ntwo words\n"


def test_errors(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("envsubst a b")
    assert result.exit_code == 1
    assert result.stderr.startswith("envsubst: too many arguments")
