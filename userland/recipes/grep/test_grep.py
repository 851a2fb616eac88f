"""grep: its kinds of expressions, and its ways to end early."""

from __future__ import annotations

import pytest

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

test_matches = prints(
    ("printf 'ab\\naab\\nb\\n' | grep -n '^a*b$'", "1:ab\n2:aab\n3:b\n"),
    ("printf 'abab\\nabba\\n' | grep -E '^(ab)+$'", "abab\n"),
    ("printf 'a.c\\nabc\\n' | grep -F a.c", "a.c\n"),
    ("printf 'xyx\\nxyz\\n' | grep '\\(x\\)y\\1'", "xyx\n"),
    ("printf 'one two\\n' | grep -ow '[a-z]*'", "one\ntwo\n"),
    ("printf 'Ärger\\n' | LC_ALL=C.UTF-8 grep -i 'ÄRGER'", "Ärger\n"),
    ("printf 'v1.2\\nv1.x\\n' | grep -P '^v\\d+\\.\\d+$'", "v1.2\n"),
    ("echo 'price: 42 EUR' | grep -oP '(?<=price: )\\d+(?= EUR)'", "42\n"),
    ("echo 'key=value' | grep -oP 'key=\\K.*'", "value\n"),
    ("printf 'aXb\\na\\nb\\n' | grep -cP 'a.*?b'", "1\n"),
    ("printf 'a\\nb\\n' | grep -Pzo 'a\\nb' | tr '\\0' '!'", "a\nb!"),
    ("printf 'größe\\n' | LC_ALL=C.UTF-8 grep -oP '\\w+'", "größe\n"),
    ("printf 'größe\\n' | LC_ALL=C.UTF-8 grep -P '^\\p{L}{5}$'", "größe\n"),
    ("mkdir -p d/e; echo x > d/e/f; grep -r x d", "d/e/f:x\n"),
    ("printf '\\0x\\n' | grep x 2>&1", "grep: (standard input): binary file matches\n"),
)


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


@pytest.mark.parametrize(
    ("name", "option", "pattern", "found"),
    [("egrep", "-E", "a|c", "a\nc"), ("fgrep", "-F", "a.", "a.")],
)
def test_the_old_names_are_scripts_that_warn(
    sandbox: Sandbox, name: str, option: str, pattern: str, found: str
) -> None:
    result = sandbox.commands.run(f"printf 'a\\nb\\nc\\na.\\n' | {name} -x '{pattern}'")
    assert result.stdout == f"{found}\n"
    assert result.stderr == f"{name}: warning: {name} is obsolescent; using grep {option}\n"


def test_a_wrong_expression_of_perls_kind_is_explained(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo a | grep -P '(a'")
    assert result.exit_code == 2
    assert result.stderr == "grep: missing closing parenthesis\n"


def test_backtracking_without_end_is_stopped_by_a_limit(sandbox: Sandbox) -> None:
    script = "printf '%s\\n' {a..z}{a..z} | tr -d '\\n' | sed 's/./a/g; s/$/b/' | grep -P '^(a+)+$'"
    result = sandbox.commands.run(script)
    assert result.exit_code == 2
    assert "exceeded PCRE's backtracking limit" in result.stderr


def test_perls_expressions_on_a_million_lines(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("seq 1000000 | grep -cP '^(?=.*7)\\d*3$'", timeout_ms=120_000)
    assert (result.stdout, result.stderr) == ("40951\n", "")
