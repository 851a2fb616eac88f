"""WASI programs on a terminal: isatty, job control, Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.wasi.zig import compiled
from wasmsand.machine import HostTerminal, Machine

PATIENCE = 30.0
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin", "PS1": "> ", "TERM": "dumb", "PWD": "/tmp"}


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    for name in ("libc", "copy"):
        wasm = compiled(name).read_bytes()
        machine.files.write(f"/usr/local/bin/{name}", wasm, mode=0o755)
    yield machine
    machine.close()


def read_until(terminal: HostTerminal, wanted: bytes) -> bytes:
    shown = b""
    deadline = time.monotonic() + PATIENCE
    while wanted not in shown:
        assert time.monotonic() < deadline, shown
        shown += terminal.read()
    return shown


def test_a_terminal_is_one_to_the_c_library(machine: Machine) -> None:
    terminal = machine.open_terminal([b"libc"], environ=ENVIRONMENT, cwd="/tmp")
    assert b"a terminal: 1 1" in read_until(terminal, b"PWD")
    assert terminal.wait(PATIENCE) == 0


def test_keys_stop_continue_and_end_it(machine: Machine) -> None:
    shell = [b"/bin/bash", b"--norc", b"--noediting", b"-i"]
    terminal = machine.open_terminal(shell, environ=ENVIRONMENT, cwd="/tmp")
    read_until(terminal, b"> ")
    terminal.write(b"copy\n")
    terminal.write(b"hello\n")
    read_until(terminal, b"hello\r\nhello\r\n")
    terminal.write(b"\x1a")
    read_until(terminal, b"Stopped")
    terminal.write(b"jobs; fg\n")
    read_until(terminal, b"copy\r\n")
    terminal.write(b"again\n")
    read_until(terminal, b"again\r\nagain\r\n")
    terminal.write(b"\x03")
    read_until(terminal, b"> ")
    terminal.write(b"echo $?; exit 7\n")
    read_until(terminal, b"130")
    assert terminal.wait(PATIENCE) == 7


def test_in_the_background_it_is_stopped_when_it_reads(machine: Machine) -> None:
    shell = [b"/bin/bash", b"--norc", b"--noediting", b"-i"]
    terminal = machine.open_terminal(shell, environ=ENVIRONMENT, cwd="/tmp")
    read_until(terminal, b"> ")
    terminal.write(b"copy &\n")
    terminal.write(b"sleep 0.5; jobs\n")
    read_until(terminal, b"Stopped")
    terminal.write(b"fg\n")
    time.sleep(0.2)
    terminal.write(b"now\n")
    read_until(terminal, b"now\r\nnow\r\n")
    terminal.write(b"\x04")
    read_until(terminal, b"> ")
    terminal.close()
