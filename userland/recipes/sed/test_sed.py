"""sed: editing, in streams and in place, and commands it starts."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("echo hello | sed 's/l\\+/L/g'", "heLo\n"),
        ("echo hello | sed -E 's/(h)(e)/\\2\\1/; y/lo/01/'", "eh001\n"),
        ("seq 5 | sed -n '2,4{p;=}' | paste -sd,", "2,2,3,3,4,4\n"),
        ("seq 3 | sed '1!G;h;$!d'", "3\n2\n1\n"),
        ("echo one > f; sed -i.old s/one/two/ f; cat f f.old", "two\none\n"),
        ("echo | sed '1e echo from a command'", "from a command\n\n"),
        ("printf 'x\\n' | sed 's/x/\\U&é/'", "XÉ\n"),
    ],
)
def test_scripts(sandbox: Sandbox, script: str, stdout: str) -> None:
    result = sandbox.commands.run(script, env={"LC_ALL": "C.UTF-8"})
    assert (result.stdout, result.stderr) == (stdout, "")


def test_a_wrong_script_is_explained(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("sed 's/a'")
    assert result.exit_code == 1
    assert result.stderr == "sed: -e expression #1, char 3: unterminated `s' command\n"
