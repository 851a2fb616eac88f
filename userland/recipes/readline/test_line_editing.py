"""readline in the programs that are linked with it: editing, history, the end of input."""

from __future__ import annotations

import pytest

from userland.recipes.screen import Screen
from wasmsand.machine import Machine

BACK, UP, ERASE_TO_END, END_OF_FILE = "\x1b[D", "\x1b[A", "\x0b", "\x04"


@pytest.mark.parametrize(
    ("program", "prompt", "first"),
    [("lua", ">", "print(1+2)"), ("sqlite3", "sqlite>", "SELECT 1+2;")],
)
def test_a_line_is_corrected_and_called_back(
    machine: Machine, program: str, prompt: str, first: str
) -> None:
    def answered(answer: str) -> None:
        """The answer has a line of its own, and a prompt comes after it."""
        screen.wait_until(
            lambda lines: answer in lines and lines[lines.index(answer) + 1] == prompt
        )

    with Screen(machine, program) as screen:
        screen.wait_until(lambda lines: prompt in lines)
        # 1+2 is corrected to 10+2, and then called back and given another end.
        screen.type(first + BACK * 3 + "0\r")
        answered("12")
        screen.type(UP + BACK * 2 + ERASE_TO_END + "700" + first[-1] + "\r")
        answered("710")
        screen.type(END_OF_FILE)
        assert screen.wait_for_exit() == 0
