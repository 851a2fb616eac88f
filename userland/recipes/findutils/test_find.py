"""find: tests of files, and commands it starts."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("arguments", "stdout"),
    [
        ("d -name '*.txt' | sort", "d/a.txt\nd/e/b.txt\n"),
        ("d -type d -printf '%p %y\\n' | sort", "d d\nd/e d\n"),
        ("d -type f -size +1k", "d/e/b.txt\n"),
        ("d -name a.txt -exec basename {} \\; -exec false {} \\; -print", "a.txt\n"),
        ("d -type f -exec printf '<%s>\\n' {} + | sort", "<d/a.txt>\n<d/e/b.txt>\n"),
        ("d -name b.txt -execdir pwd \\;", "/home/user/d/e\n"),
        ("d -newermt 2001-01-01 ! -newermt 2001-01-03", "d/a.txt\n"),
        ("d -depth -delete; ls", ""),
    ],
)
def test_searches(sandbox: Sandbox, arguments: str, stdout: str) -> None:
    sandbox.commands.run("mkdir -p d/e; touch -d 2001-01-02 d/a.txt; seq 1000 > d/e/b.txt")
    result = sandbox.commands.run(f"find {arguments}")
    assert (result.stdout, result.stderr) == (stdout, "")


def test_a_command_that_does_not_exist_is_told(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("LC_ALL=C find /etc/hosts -exec nosuch {} +")
    assert result.exit_code == 1
    assert result.stderr == "find: 'nosuch': No such file or directory\n"
