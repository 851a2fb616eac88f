"""The terminal database, and the programs that ask it."""

from __future__ import annotations

import pytest

from userland.recipes.screen import Screen
from userland.recipes.script_tables import prints
from wasmsand import Sandbox
from wasmsand.machine import Machine

test_capabilities = prints(
    ("tput -T xterm-256color colors", "256\n"),
    ("tput -T xterm setaf 1 bold; tput -T xterm sgr0", "\x1b[31m\x1b[1m\x1b(B\x1b[m"),
    ("tput -T vt100 cup 4 9", "\x1b[5;10H"),
    ("TERM=xterm tput -S <<< $'bold\\nsmul'", "\x1b[1m\x1b[4m"),
    ("TERM=linux clear", "\x1b[H\x1b[J\x1b[3J"),
    ("TERM=dumb tput cols; TERM=dumb tput setaf 1; echo $?", "80\n1\n"),
    ("tput -T nonesuch cols 2>&1; echo $?", 'tput: unknown terminal "nonesuch"\n3\n'),
    ("infocmp -1 -x tmux-256color | grep -c smcup", "1\n"),
    ("infocmp -d xterm xterm-256color | grep -o 'colors: 8, 256'", "colors: 8, 256\n"),
)


TERMINALS = """
    alacritty ansi dumb foot linux rxvt rxvt-unicode-256color screen screen-256color tmux
    tmux-256color vt100 vt102 vt220 wezterm xterm xterm-256color xterm-color xterm-ghostty
    xterm-kitty
"""


@pytest.mark.parametrize("term", TERMINALS.split())
def test_terminals_that_are_known(sandbox: Sandbox, term: str) -> None:
    result = sandbox.commands.run(f"tput -T {term} bel")
    assert (result.stdout, result.stderr) == ("\a", "")


def test_a_description_of_ones_own(sandbox: Sandbox) -> None:
    script = """
    echo 'mine|my terminal, cols#33, bold=\\E[1m,' > mine.ti && tic mine.ti
    TERM=mine tput cols; TERM=mine tput bold; ls .terminfo/m
    """
    assert sandbox.commands.run(script).stdout == "33\n\x1b[1mmine\n"


def test_reset_restores_a_terminal(machine: Machine) -> None:
    with Screen(machine, "stty -echo raw; reset; stty -a; echo done") as screen:
        lines = screen.wait_for("done")
        settings = " ".join(lines)
        assert " icanon" in settings
        assert " echo " in settings
        assert screen.wait_for_exit() == 0


def test_clear_clears_the_screen(machine: Machine) -> None:
    with Screen(machine, "echo before; clear; echo after; read") as screen:
        assert screen.wait_for("after")[0] == "after"
        assert "before" not in screen.text
