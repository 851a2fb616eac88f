"""xargs: building command lines, running them one by one and in parallel."""

from __future__ import annotations

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

test_command_lines = prints(
    ("seq 5 | xargs -n2 echo", "1 2\n3 4\n5\n"),
    ("printf 'a b\\0c\\0' | xargs -0 -n1 echo", "a b\nc\n"),
    ("seq 2 | xargs -I{} echo x{}y", "x1y\nx2y\n"),
    ("seq 20 | xargs -P4 -n1 echo | sort -n | tail -n 1", "20\n"),
    ("xargs -r echo never < /dev/null", ""),
    ("seq 100000 | xargs echo | wc -w", "100000\n"),
)


def test_a_failure_is_remembered_while_others_run(sandbox: Sandbox) -> None:
    # The child after the failed one must not reset what its parent knows.
    result = sandbox.commands.run("printf 'a\\nb\\n' | xargs -n1 sh -c '[ $1 = b ]' _")
    assert result.exit_code == 123


def test_a_command_that_does_not_exist(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo x | xargs nosuch")
    assert (result.exit_code, result.stderr) == (
        127,
        "xargs: nosuch: No such file or directory\n",
    )
