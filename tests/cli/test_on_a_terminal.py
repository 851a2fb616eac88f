"""`wasmsand run` on a terminal: programs have one too, and the user's is always restored."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

from tests.cli.command import COMMAND
from tests.cli.user import User
from tests.waiting import wait_until


def test_vim_edits_and_saves_a_file(tmp_path: Path) -> None:
    saved = tmp_path / "letter.txt"
    with User("run", "--out", f"letter.txt:{saved}", "vim", "letter.txt") as user:
        user.wait_for_screen("~")
        user.type("iDear reader\x1b")
        user.wait_for_screen("Dear reader")
        user.type("\x1a:wq\r")  # nobody could resume a stopped vim: it goes on
        assert (user.status(), user.has_old_settings) == (0, True)
    assert saved.read_text() == "Dear reader\n"


def test_top_draws_and_quits() -> None:
    with User("run", "top") as user:
        user.wait_for_screen("COMMAND")
        user.type("q")
        assert (user.status(), user.has_old_settings) == (0, True)


def test_a_script_reads_a_line_and_its_status_passes_through() -> None:
    with User("run", "read -p 'name? ' x; echo hello $x; exit 7") as user:
        user.expect("name? ")
        user.type("you\r")
        user.expect("hello you\r\n")
        assert (user.status(), user.has_old_settings) == (7, True)


def test_ctrl_c_ends_the_command() -> None:
    with User("run", "echo started; sleep 100; echo not this") as user:
        user.expect("started")
        user.type("\x03")
        assert user.status() == 130
        assert b"not this" not in user.shown


def test_a_new_size_of_the_window_arrives() -> None:
    script = "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done"
    with User("run", script) as user:
        user.expect("ready")
        user.resize(50, 132)
        user.expect("50 132\r\n")
        assert user.status() == 3


def test_sigterm_restores_the_terminal_and_leaves_the_alternate_screen() -> None:
    with User("run", "vim") as user:
        user.wait_for_screen("~")
        assert not user.has_old_settings
        user.process.send_signal(signal.SIGTERM)
        assert (user.status(), user.has_old_settings) == (143, True)
        assert user.shown.rfind(b"\x1b[?1049l") > user.shown.rfind(b"\x1b[?1049h")


def test_a_suspended_command_line_gives_the_terminal_back() -> None:
    with User("run", "echo ready; cat") as user:
        user.expect("ready")
        user.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, user.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert user.has_old_settings
        user.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not user.has_old_settings)
        user.type("\x04")
        assert (user.status(), user.has_old_settings) == (0, True)


def test_a_timeout_is_status_124() -> None:
    with User("run", "--timeout", "0.5", "cat") as user:
        assert (user.status(), user.has_old_settings) == (124, True)
        assert b"wasmsand: command timed out" in user.shown


def test_a_closed_window_ends_everything() -> None:
    user = User("run", "echo ready; sleep 1000")
    user.expect("ready")
    os.close(user.follower)
    os.close(user.terminal)
    assert user.process.wait(60) == 129


def test_keys_that_a_command_does_not_read_do_not_block_signals() -> None:
    with User("run", "echo ready; sleep 1000") as user:
        user.expect("ready")
        os.set_blocking(user.terminal, False)
        try:
            for _ in range(1000):
                user.type("some words\r" * 20)
        except BlockingIOError:
            pass  # all buffers are full
        os.set_blocking(user.terminal, True)
        user.process.send_signal(signal.SIGTERM)
        assert (user.status(), user.has_old_settings) == (143, True)


def test_a_job_in_the_background_is_not_stopped() -> None:
    job = shlex.join([*COMMAND, "run", "test -t 1 || echo no terminal; exit 3"])
    with User("-mc", f"{job} & wait $!", command=["bash"]) as user:
        assert user.status() == 3
        assert b"no terminal\r\n" in user.shown


def test_an_unknown_program_is_status_127() -> None:
    with User("run", "no-such-program", "x") as user:
        assert (user.status(), user.has_old_settings) == (127, True)
        assert b"wasmsand: no-such-program: command not found" in user.shown


def test_redirected_output_goes_to_its_file_and_not_through_a_terminal(tmp_path: Path) -> None:
    script = "test -t 1 && echo terminal; echo out; echo err >&2"
    with User("run", "echo unused") as user:
        user.status()
        with (tmp_path / "err").open("wb") as errors:
            result = subprocess.run(
                [*COMMAND, "run", script],
                stdin=user.follower,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=60,
                check=True,
            )
    assert (result.stdout, (tmp_path / "err").read_bytes()) == (b"out\n", b"err\n")
