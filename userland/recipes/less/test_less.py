"""less and more: on a terminal, and in a pipe."""

from __future__ import annotations

import pytest

from userland.recipes.screen import Screen
from wasmsand import Sandbox
from wasmsand.machine import Machine


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("seq 3 | less", "1\n2\n3\n"),
        ("seq 100000 | less | tail -n 1", "100000\n"),
        ("echo a > f; echo b > g; less f g", "a\nb\n"),
        ("seq 2 | more", "1\n2\n"),
        ("less --version | head -n 1", "less 668 (POSIX regular expressions)\n"),
    ],
)
def test_output_that_is_no_terminal_is_just_copied(
    sandbox: Sandbox, script: str, stdout: str
) -> None:
    assert sandbox.commands.run(script).stdout == stdout


def test_a_missing_file(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("less missing 2>&1")
    assert result.stdout == "missing: No such file or directory\n"


def test_pages_are_turned_and_text_is_found(machine: Machine) -> None:
    with Screen(machine, "seq 1000 | less") as screen:
        screen.wait_until(lambda lines: lines[0] == "1" and lines[-1] == ":")
        screen.type(" ")
        screen.wait_until(lambda lines: lines[0] == "24")
        screen.type("/^500$\r")
        screen.wait_until(lambda lines: lines[0] == "500")
        screen.type("G")
        screen.wait_until(lambda lines: lines[-2] == "1000" and lines[-1] == "(END)")
        screen.type("g")
        screen.wait_until(lambda lines: lines[0] == "1")
        screen.type("q")
        assert screen.wait_for_exit() == 0


def test_a_file_of_wide_characters_with_line_numbers(machine: Machine) -> None:
    machine.files.write("/home/user/f", "".join(f"Zeile {i} äöü\n" for i in range(60)).encode())
    with Screen(machine, "less -N f") as screen:
        screen.wait_until(lambda lines: lines[0] == "      1 Zeile 0 äöü")
        screen.type("50G")
        screen.wait_until(lambda lines: "     60 Zeile 59 äöü" in lines)
        screen.type("q")
        assert screen.wait_for_exit() == 0


def test_a_screenful_needs_no_keys_with_F(machine: Machine) -> None:
    with Screen(machine, "seq 5 | less -FX") as screen:
        screen.wait_until(lambda lines: lines[:5] == ["1", "2", "3", "4", "5"])
        assert screen.wait_for_exit() == 0


def test_a_pattern_names_the_next_file_and_a_command_runs(machine: Machine) -> None:
    for name in ("one", "two"):
        machine.files.write(f"/home/user/{name}.txt", name.encode() + b" is shown\n")
    with Screen(machine, "less one.txt") as screen:
        screen.wait_for("one is shown")
        screen.type(":e tw*\r")
        screen.wait_for("two is shown")
        screen.type("!echo $((6*7))\r")
        screen.wait_for("42")
        screen.type("\r")
        screen.wait_for("two is shown")
        screen.type("q")
        assert screen.wait_for_exit() == 0


def test_more_pages_forward_and_ends_by_itself(machine: Machine) -> None:
    with Screen(machine, "seq 30 | more; echo over") as screen:
        screen.wait_for("--More--")
        screen.type(" ")
        screen.wait_for("30")
        screen.type(" ")
        screen.wait_for("over")
