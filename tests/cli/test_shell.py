"""`wasmsand shell`: an interactive bash, seen through a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest

from tests.cli.command import COMMAND

SHELL = [*COMMAND, "shell"]


class Session:
    """One `wasmsand shell` on a terminal of 24 rows and 80 columns."""

    def __init__(self) -> None:
        self.terminal, follower = pty.openpty()
        self.resize(24, 80)
        self.process = subprocess.Popen(
            SHELL,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm"},
        )
        self.before = termios.tcgetattr(follower)
        self.follower = follower
        self.screen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def expect(self, text: str, seconds: float = 30) -> None:
        """Wait for `text` after what was seen last."""
        deadline = time.monotonic() + seconds
        while text.encode() not in self.screen:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.terminal], [], [], max(left, 0))
            assert ready, f"waited for {text!r}, saw {self.screen!r}"
            self.screen += os.read(self.terminal, 65536)
        self.screen = self.screen.partition(text.encode())[2]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.follower)
        os.close(self.terminal)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session()
    session.expect("$ ")
    try:
        yield session
    finally:
        session.close()


def test_commands_and_exit_status(session: Session) -> None:
    session.type("echo $((6 * 7))\r")
    session.expect("\r42\r\n")
    session.type("exit 3\r")
    assert session.process.wait(timeout=10) == 3


def test_end_of_file_ends_the_shell(session: Session) -> None:
    session.type("\x04")
    assert session.process.wait(timeout=10) == 0


def test_the_terminal_is_given_back_as_it_was(session: Session) -> None:
    session.type("exit\r")
    session.process.wait(timeout=10)
    assert termios.tcgetattr(session.follower) == session.before


def test_ctrl_c_interrupts_the_foreground_and_not_the_shell(session: Session) -> None:
    session.type("sleep 60; echo not this\r")
    time.sleep(0.5)
    session.type("\x03")
    session.expect("$ ")
    session.type("echo status $?\r")
    session.expect("status 130\r\n")


def test_ctrl_z_stops_and_fg_resumes(session: Session) -> None:
    session.type("sleep 2 && echo woke\r")
    time.sleep(0.5)
    session.type("\x1a")
    session.expect("Stopped")
    session.type("fg\r")
    session.expect("sleep 2")
    session.expect("$ ")


def test_the_guest_sees_the_size_of_the_window(session: Session) -> None:
    session.type("stty size\r")
    session.expect("\r24 80\r\n")
    session.resize(50, 132)
    os.kill(session.process.pid, signal.SIGWINCH)
    # The host is told with a delay.
    session.type("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.05; done; echo it grew\r")
    session.expect("\rit grew\r\n")


def test_line_editing_and_history(session: Session) -> None:
    session.type("echo abX\x7fc\r")
    session.expect("\rabc\r\n")
    session.type("\x1b[A\r")
    session.expect("\rabc\r\n")


def test_standard_input_that_is_not_a_terminal_is_a_script() -> None:
    result = subprocess.run(
        SHELL, input=b"x=5\necho $((x * 2))\nexit 4\n", capture_output=True, timeout=60
    )
    assert (result.stdout, result.stderr, result.returncode) == (b"10\n", b"", 4)
