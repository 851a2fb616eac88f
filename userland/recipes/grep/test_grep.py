"""grep: its kinds of expressions, and its ways to end early."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("printf 'ab\\naab\\nb\\n' | grep -n '^a*b$'", "1:ab\n2:aab\n3:b\n"),
        ("printf 'abab\\nabba\\n' | grep -E '^(ab)+$'", "abab\n"),
        ("printf 'a.c\\nabc\\n' | grep -F a.c", "a.c\n"),
        ("printf 'xyx\\nxyz\\n' | grep '\\(x\\)y\\1'", "xyx\n"),
        ("printf 'one two\\n' | grep -ow '[a-z]*'", "one\ntwo\n"),
        ("printf 'Ärger\\n' | LC_ALL=C.UTF-8 grep -i 'ÄRGER'", "Ärger\n"),
        ("mkdir -p d/e; echo x > d/e/f; grep -r x d", "d/e/f:x\n"),
        ("printf '\\0x\\n' | grep x 2>&1", "grep: (standard input): binary file matches\n"),
    ],
)
def test_matches(sandbox: Sandbox, script: str, stdout: str) -> None:
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr) == (stdout, "")


def test_a_search_for_its_status_alone_reads_a_pipe_to_its_end(sandbox: Sandbox) -> None:
    # Output to /dev/null ends the search at the first match; the rest is spliced away, so
    # that the writer is not ended by SIGPIPE.
    script = "seq 100000 | grep 7 >/dev/null; echo ${PIPESTATUS[@]}"
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr) == ("0 0\n", "")


def test_exit_status(sandbox: Sandbox) -> None:
    script = "echo a | grep -q a; echo $?; echo a | grep -q b; echo $?; grep a missing; echo $?"
    result = sandbox.commands.run(script)
    assert result.stdout == "0\n1\n2\n"
    assert result.stderr == "grep: missing: No such file or directory\n"
