"""which: where a command is."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("script", "stdout", "stderr", "status"),
    [
        ("which ls", "/usr/bin/ls\n", "", 0),
        ("which -a ls", "/usr/bin/ls\n/bin/ls\n", "", 0),
        ("PATH=/bin which ls bash", "/bin/ls\n/bin/bash\n", "", 0),
        ("which ./tool", "/home/user/tool\n", "", 0),
        ("PATH=.:/bin:/usr/bin which --skip-dot tool ls", "/bin/ls\n",
         "which: no tool in (.:/bin:/usr/bin)\n", 1),
        ("PATH=/bin which nothing-here", "", "which: no nothing-here in (/bin)\n", 1),
        ("which plain 2>/dev/null", "", "", 1),
    ],
)  # fmt: skip
def test_which(sandbox: Sandbox, script: str, stdout: str, stderr: str, status: int) -> None:
    sandbox.commands.run("printf '#!/bin/sh\\n' > tool; chmod +x tool; touch plain")
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr, result.exit_code) == (stdout, stderr, status)


def test_the_usual_question_of_scripts(sandbox: Sandbox) -> None:
    script = "for p in bash awk which nope; do which $p >/dev/null 2>&1 && echo $p; done"
    assert sandbox.commands.run(script).stdout == "bash\nawk\nwhich\n"


def test_version(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("which --version").stdout.startswith("GNU which v2.21")
