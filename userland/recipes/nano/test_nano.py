"""nano, as somebody at a terminal uses it."""

from __future__ import annotations

from userland.recipes.screen import Screen
from wasmsand.machine import Machine

CTRL_K, CTRL_O, CTRL_T, CTRL_U, CTRL_W, CTRL_X = (chr(ord(key) - 64) for key in "KOTUWX")
DOWN = "\x1b[B"


def test_a_file_is_opened_changed_saved_and_left(machine: Machine) -> None:
    machine.files.write("/home/user/f", b"one\ntwo\nthree\n")
    with Screen(machine, "nano f") as screen:
        screen.wait_until(lambda lines: lines[1:4] == ["one", "two", "three"])
        screen.type(f"{CTRL_K}{DOWN}{DOWN}{CTRL_U}")
        screen.wait_until(lambda lines: lines[1:4] == ["two", "three", "one"])
        screen.type("\u00e4 \u2713!")
        screen.wait_until(lambda lines: lines[4] == "\u00e4 \u2713!")
        screen.type(f"{CTRL_O}\r")
        screen.wait_until(lambda lines: any("Wrote 4 lines" in line for line in lines))
        screen.type(CTRL_X)
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f").decode() == "two\nthree\none\n\u00e4 \u2713!\n"


def test_text_is_searched_for(machine: Machine) -> None:
    machine.files.write("/home/user/f", b"one\ntwo\nthree\n")
    with Screen(machine, "nano f") as screen:
        screen.wait_until(lambda lines: lines[1] == "one")
        screen.type(f"{CTRL_W}thr\r")
        screen.type("X")
        screen.wait_until(lambda lines: lines[3] == "Xthree")
        screen.type(f"{CTRL_X}n")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f") == b"one\ntwo\nthree\n"


def test_a_command_s_output_is_inserted(machine: Machine) -> None:
    with Screen(machine, "nano f") as screen:
        screen.wait_until(lambda lines: "GNU nano" in lines[0])
        screen.type(f"{CTRL_T}seq 3\r")
        screen.wait_until(lambda lines: lines[1:4] == ["1", "2", "3"])
        screen.type(f"{CTRL_X}y\r")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f") == b"1\n2\n3\n"


def test_the_text_goes_through_a_filter(machine: Machine) -> None:
    lines = "".join(f"{number:05}\n" for number in range(20_000))
    machine.files.write("/home/user/f", lines.encode())
    with Screen(machine, "nano f") as screen:
        screen.wait_until(lambda lines: lines[1] == "00000")
        screen.type(f"{CTRL_T}|sort -r\r")
        screen.wait_until(lambda lines: "19999" in lines)
        screen.type(f"{CTRL_X}y\r")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f").split() == lines.encode().split()[::-1]


def test_a_key_of_the_prompt_runs_a_command(machine: Machine) -> None:
    """^T, then ^Y: the syntax's checker, of which a file without a syntax has none."""
    with Screen(machine, "nano f") as screen:
        screen.wait_until(lambda lines: "GNU nano" in lines[0])
        screen.type(f"{CTRL_T}\x19")
        screen.wait_until(lambda lines: any("No linter is defined" in line for line in lines))
        screen.type(CTRL_X)
        assert screen.wait_for_exit() == 0
