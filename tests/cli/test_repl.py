"""`wasmsand python` on a terminal is Python's interactive interpreter."""

from __future__ import annotations

import time
from pathlib import Path

from tests.cli.user import User
from tests.waiting import PATIENCE


def wait_for_prompt(user: User) -> None:
    """Wait until Python reads keys again. What is typed before belongs to the terminal's line
    editor, which would take a Ctrl-D for itself."""
    deadline = time.monotonic() + PATIENCE
    while [line.strip() for line in user.display.lines if line.strip()][-1:] != [">>>"]:
        assert user.look(deadline - time.monotonic()), user.display.lines


def test_it_computes_and_ctrl_d_ends_it() -> None:
    with User("python") as user:
        user.wait_for_screen('Type "help"')
        user.wait_for_screen(">>>")
        user.type("6 * 7\r")
        user.wait_for_screen("42")
        wait_for_prompt(user)
        user.type("\x04")
        assert (user.status(), user.has_old_settings) == (0, True)


def test_lines_are_edited_history_comes_back_and_ctrl_c_drops_a_line() -> None:
    with User("python") as user:
        user.wait_for_screen(">>>")
        user.type("print('abX\x7fc')\r")
        user.wait_for_screen("abc")
        user.type("\x1bOA\x1bOD\x1bOD!\r")  # up, left, left
        user.wait_for_screen("abc!")
        user.type("never\x03")
        user.wait_for_screen("KeyboardInterrupt")
        user.type("def double(n):\rreturn n * 2\r\rdouble(21)\r")
        user.wait_for_screen("42")
        user.type("raise SystemExit(5)\r")
        assert (user.status(), user.has_old_settings) == (5, True)


def test_ctrl_c_interrupts_a_computation() -> None:
    with User("python") as user:
        user.wait_for_screen(">>>")
        user.type("while True: pass\r\r")
        user.type("\x03")
        user.wait_for_screen("KeyboardInterrupt")
        wait_for_prompt(user)
        user.type("'go' + 'es on'\r")
        user.wait_for_screen("'goes on'")
        wait_for_prompt(user)
        user.type("\x04")
        assert user.status() == 0


def test_it_has_colours_unless_the_user_wants_none() -> None:
    with User("python") as user:
        user.wait_for_screen(">>>")
        assert b"\x1b[1;35m>>> " in user.shown
    with User("python", environ={"NO_COLOR": "1"}) as user:
        user.wait_for_screen(">>>")
        assert b"\x1b[1;35m" not in user.shown


def test_it_is_interactive_after_a_script(tmp_path: Path) -> None:
    script = tmp_path / "begin.py"
    script.write_text("import sys\nprint(sys.argv)\nx = 20\n")
    with User("python", "-i", str(script), "--flag") as user:
        user.wait_for_screen("['begin.py', '--flag']")
        user.wait_for_screen(">>>")
        user.type("x + 22\r")
        user.wait_for_screen("42")
        user.type("exit()\r")
        assert user.status() == 0


def test_the_debugger_and_input_have_the_terminal() -> None:
    code = "name = input('name? '); breakpoint(); print('bye', name)"
    with User("python", "-c", code) as user:
        user.expect("name? ")
        user.type("you\r")
        user.expect("(Pdb) ")
        user.type("p name * 2\r")
        user.expect("'youyou'")
        user.type("c\r")
        user.expect("bye you")
        assert user.status() == 0
