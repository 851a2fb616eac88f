"""The core utilities: all are there, and those that fork do it rightly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wasmsand import Sandbox

MANIFEST = Path(__file__).resolve().parents[3] / "src/wasmsand/_image/manifest.json"


def installed_names() -> list[str]:
    programs = json.loads(MANIFEST.read_text())["programs"]
    (paths,) = (program["names"] for program in programs if program["name"] == "coreutils")
    return [Path(path).name for path in paths]


def test_every_installed_name_is_a_program_of_the_binary(sandbox: Sandbox) -> None:
    names = [name for name in installed_names() if name not in ("[", "test", "coreutils")]
    result = sandbox.commands.run(
        f"for p in {' '.join(names)}; do /bin/$p --version >/dev/null 2>&1 || "
        '{ [ $p = false ] && continue; echo "$p: $?"; }; done'
    )
    assert result.stdout == ""


def test_binary_has_no_program_that_is_not_installed(sandbox: Sandbox) -> None:
    text = sandbox.commands.run("coreutils --help").stdout
    listed = text.split("Built-in programs:")[1].split("Use:")[0].split()
    # The build calls install ginstall, and it answers to both names.
    assert sorted(set(listed) - set(installed_names())) == ["ginstall"]


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("echo hello | tr a-z A-Z", "HELLO\n"),
        ("seq 5 | shuf | sort -n | head -n 2", "1\n2\n"),
        ("printf abc | sha256sum | cut -c1-16", "ba7816bf8f01cfea\n"),
        ("factor 123456789012345678901", "123456789012345678901: 11 5471 10000799 205126079\n"),
        ("TZ=UTC date -d '2024-02-29 +1 year' +%F", "2025-03-01\n"),
        ("mkdir -p a/b && touch a/b/c && ls -R a", "a:\nb\n\na/b:\nc\n"),
        ("numfmt --to=iec 1048576", "1.0M\n"),
        ("env -i A=1 env", "A=1\n"),
        ("cd /tmp && echo x > f && ln -s f l && readlink l && stat -c %F l", "f\nsymbolic link\n"),
    ],
)  # fmt: skip
def test_command_prints(sandbox: Sandbox, script: str, stdout: str) -> None:
    assert sandbox.commands.run(script).stdout == stdout


def test_timeout_ends_a_child_that_takes_too_long(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("timeout 0.2 sleep 30")
    assert (result.exit_code, result.stderr) == (124, "")
    assert 200 <= result.execution_time_ms < 900
    assert sandbox.commands.run("timeout 30 sh -c 'exit 5'").exit_code == 5


def test_tail_follows_a_file_that_grows(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "touch log; (sleep 0.1; echo one; sleep 0.1; echo two) > log & "
        "timeout 5 tail -s 0.05 -f log | head -n 2"
    )
    assert (result.stdout, result.stderr) == ("one\ntwo\n", "")


def test_split_filter_runs_a_shell_for_each_part(sandbox: Sandbox) -> None:
    sandbox.commands.run("cd /tmp && seq 6 | split -l 2 --filter='sort -r > $FILE.out' - part")
    assert sandbox.commands.run("cd /tmp && cat part*.out").stdout == "2\n1\n4\n3\n6\n5\n"


def test_sort_compresses_temporary_files_in_children(sandbox: Sandbox) -> None:
    # A small buffer makes temporary files, each written and read through a child; what
    # serves as a compressor needs to know -d for the way back.
    sandbox.commands.run(
        "cd /tmp && printf '#!/bin/sh\\ncat\\n' > press && chmod +x press && seq 40000 | shuf > in"
    )
    result = sandbox.commands.run(
        "cd /tmp && sort -n -S 16K --compress-program=/tmp/press in > out && seq 40000 | cmp - out"
        ' 2>/dev/null || { seq 40000 > want; test "$(sha256sum < want)" = "$(sha256sum < out)"; }'
    )
    assert (result.exit_code, result.stderr) == (0, "")


def test_file_systems_have_names(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("stat -f -c %T / /proc")
    assert (result.stdout, result.stderr) == ("tmpfs\nproc\n", "")


def test_a_rename_does_not_replace_what_it_must_not(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("cd /tmp && echo a > a; echo b > b; mv -n a b; mv --exchange a b")
    assert (result.stdout, result.stderr) == ("", "")
    assert sandbox.commands.run("cat /tmp/a /tmp/b").stdout == "b\na\n"


@pytest.mark.parametrize(("option", "threads"), [("", "1"), ("--parallel=2", "2")])
def test_sort_has_one_thread_unless_it_is_told_otherwise(
    sandbox: Sandbox, option: str, threads: str
) -> None:
    result = sandbox.commands.run(
        f"seq 300000 | shuf > lines; sort {option} lines > sorted & "
        "while kill -0 $! 2> /dev/null; do grep Threads /proc/$!/status 2> /dev/null; done "
        "| sort -u | tail -n 1"
    )
    assert result.stdout.split() == ["Threads:", threads]
