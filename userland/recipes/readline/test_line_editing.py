"""readline in the programs that are linked with it: editing, history, the end of input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wasmsand.machine import HostTerminal, Machine

ENVIRONMENT = {"TERM": "xterm", "HOME": "/home/user", "PATH": "/usr/bin:/bin"}
BACK, UP, ERASE_TO_END, END_OF_FILE = b"\x1b[D", b"\x1b[A", b"\x0b", b"\x04"


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    try:
        yield machine
    finally:
        machine.close()


def shown_until(terminal: HostTerminal, end: bytes) -> None:
    shown = b""
    while end not in shown:
        more = terminal.read()
        assert more, f"the session ended; shown so far: {shown!r}"
        shown += more


@pytest.mark.parametrize(
    ("program", "prompt", "first", "again"),
    [
        # 1 + 2, corrected to 10 + 2; then the same with another end.
        (b"lua", b"> ", b"print(1+2)", b"print(10+700)"),
        (b"sqlite3", b"sqlite> ", b"SELECT 1+2;", b"SELECT 10+700;"),
    ],
)
def test_a_line_is_corrected_and_called_back(
    machine: Machine, program: bytes, prompt: bytes, first: bytes, again: bytes
) -> None:
    terminal = machine.open_terminal([program], environ=ENVIRONMENT, cwd="/home/user")
    shown_until(terminal, prompt)
    terminal.write(first + BACK * 3 + b"0\r")
    shown_until(terminal, b"12\r\n")
    shown_until(terminal, prompt)
    terminal.write(UP + BACK * 2 + ERASE_TO_END + again[-4:] + b"\r")
    shown_until(terminal, b"710\r\n")
    shown_until(terminal, prompt)
    terminal.write(END_OF_FILE)
    assert terminal.wait(30) == 0
