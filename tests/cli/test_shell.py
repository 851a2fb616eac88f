"""`wasmsand shell`: an interactive bash, seen through a real pseudo-terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.cli.command import COMMAND
from tests.cli.user import User

SHELL = [*COMMAND, "shell"]


@pytest.fixture
def session() -> Iterator[User]:
    session = User("shell")
    session.expect("$ ")
    try:
        yield session
    finally:
        session.close()


def test_commands_and_exit_status(session: User) -> None:
    session.type("echo $((6 * 7))\r")
    session.expect("\r42\r\n")
    session.type("exit 3\r")
    assert session.process.wait(timeout=10) == 3


def test_end_of_file_ends_the_shell(session: User) -> None:
    session.type("\x04")
    assert session.process.wait(timeout=10) == 0


def test_the_terminal_is_given_back_as_it_was(session: User) -> None:
    session.type("exit\r")
    session.process.wait(timeout=10)
    assert session.has_old_settings


def test_ctrl_c_interrupts_the_foreground_and_not_the_shell(session: User) -> None:
    session.type("bash -c 'echo runs; exec sleep 60'; echo not this\r")
    session.expect("\rruns\r\n")
    session.type("\x03")
    session.expect("$ ")
    session.type("echo status $?\r")
    session.expect("status 130\r\n")


def test_ctrl_z_stops_and_fg_resumes(session: User) -> None:
    session.type("sleep 2 && echo woke\r")
    time.sleep(0.5)
    session.type("\x1a")
    session.expect("Stopped")
    session.type("fg\r")
    session.expect("sleep 2")
    session.expect("$ ")


def test_the_guest_sees_the_size_of_the_window(session: User) -> None:
    session.type("stty size\r")
    session.expect("\r24 80\r\n")
    session.resize(50, 132)
    os.kill(session.process.pid, signal.SIGWINCH)
    # The host is told with a delay.
    session.type("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.05; done; echo it grew\r")
    session.expect("\rit grew\r\n")


def test_line_editing_and_history(session: User) -> None:
    session.type("echo abX\x7fc\r")
    session.expect("\rabc\r\n")
    session.type("\x1b[A\r")
    session.expect("\rabc\r\n")


def test_standard_input_that_is_not_a_terminal_is_a_script() -> None:
    result = subprocess.run(
        SHELL, input=b"x=5\necho $((x * 2))\nexit 4\n", capture_output=True, timeout=60
    )
    assert (result.stdout, result.stderr, result.returncode) == (b"10\n", b"", 4)
