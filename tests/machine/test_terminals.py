"""A program on a pseudo-terminal that the host drives."""

from __future__ import annotations

import pytest

from wasmsand.machine import CommandRequest, Machine, SandboxTerminal

pytestmark = pytest.mark.no_userland
PATIENCE = 30.0


def read_until(terminal: SandboxTerminal, end: bytes) -> bytes:
    shown = b""
    while end not in shown:
        more = terminal.read()
        assert more, f"the session ended; shown so far: {shown!r}"
        shown += more
    return shown


@pytest.fixture
def terminal(machine: Machine) -> SandboxTerminal:
    return machine.open_terminal(CommandRequest(("echo",), {}, "/tmp"))


def test_lines_are_echoed_by_the_terminal_and_by_the_program(terminal: SandboxTerminal) -> None:
    terminal.write(b"hello\n")
    assert read_until(terminal, b"hello\r\nhello\r\n") == b"hello\r\nhello\r\n"


def test_the_end_of_file_key_ends_the_program(terminal: SandboxTerminal) -> None:
    terminal.write(b"last\n\x04")
    assert terminal.wait(PATIENCE) == 0
    assert read_until(terminal, b"last\r\nlast\r\n")
    assert terminal.read() == b""


def test_the_interrupt_key_ends_the_program(terminal: SandboxTerminal) -> None:
    terminal.write(b"half\x03")
    assert terminal.wait(PATIENCE) == 130


@pytest.mark.parametrize("name", ["spin", "sleep", "echo"])
def test_hanging_up_ends_the_program(machine: Machine, name: str) -> None:
    terminal = machine.open_terminal(CommandRequest((name,), {}, "/tmp"))
    assert terminal.wait(0.05) is None
    terminal.close()
    terminal.close()
    assert terminal.wait(PATIENCE) == 129
    assert not machine.kernel.terminals


def test_a_large_paste_arrives_whole(terminal: SandboxTerminal) -> None:
    lines = [b"line %d" % i for i in range(3000)]
    terminal.write(b"".join(line + b"\n" for line in lines) + b"\x04")
    shown = b""
    while more := terminal.read():
        shown += more
    assert terminal.wait(PATIENCE) == 0
    # The program prints each line once; the terminal's own echo may be cut.
    position = 0
    for line in lines:
        position = shown.index(line + b"\r\n", position)


def test_output_that_nobody_reads_waits(machine: Machine) -> None:
    terminal = machine.open_terminal(CommandRequest(("chatter",), {}, "/tmp"))
    assert terminal.wait(0.1) is None
    assert len(machine.kernel.terminals[0].output) <= 65536
    assert len(terminal.read(1000)) == 1000
    terminal.close()
    assert terminal.wait(PATIENCE) == 129
