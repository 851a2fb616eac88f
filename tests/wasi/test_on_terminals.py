"""WASI programs on a terminal: isatty, job control, Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.waiting import PATIENCE, eventually
from tests.wasi.zig import compiled
from wasmsand.machine import CommandRequest, Machine, SandboxTerminal

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin", "PS1": "> ", "TERM": "dumb", "PWD": "/tmp"}


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    for name in ("libc", "copy"):
        wasm = compiled(name).read_bytes()
        machine.files.write(f"/usr/local/bin/{name}", wasm, mode=0o755)
    yield machine
    machine.close()


class Screen:
    """What a terminal has shown; a thread reads it, so that a test can time out."""

    def __init__(self, terminal: SandboxTerminal) -> None:
        self.terminal = terminal
        self._shown = bytearray()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while data := self.terminal.read():
            self._shown += data

    def shows(self, wanted: bytes, times: int = 1) -> bool:
        """Wait until `wanted` was shown that often; then forget all that was shown."""
        found = eventually(lambda: self._shown.count(wanted) >= times)
        assert found, f"{wanted!r} is not in {bytes(self._shown)!r}"
        self._shown.clear()
        return True

    def type(self, keys: bytes) -> None:
        self.terminal.write(keys)


def open_shell(machine: Machine) -> Screen:
    shell = ("/bin/bash", "--norc", "--noediting", "-i")
    screen = Screen(machine.open_terminal(CommandRequest(shell, ENVIRONMENT, "/tmp")))
    assert screen.shows(b"> ")
    return screen


def test_the_c_library_recognises_a_terminal(machine: Machine) -> None:
    screen = Screen(machine.open_terminal(CommandRequest(("libc",), ENVIRONMENT, "/tmp")))
    assert screen.shows(b"a terminal: 1 1")
    assert screen.terminal.wait(PATIENCE) == 0


def test_keys_stop_continue_and_end_a_wasi_program(machine: Machine) -> None:
    screen = open_shell(machine)
    screen.type(b"copy\n")
    screen.type(b"hello\n")
    assert screen.shows(b"hello", times=2)  # once typed, once copied
    screen.type(b"\x1a")
    assert screen.shows(b"Stopped")
    screen.type(b"fg\n")
    screen.type(b"again\n")
    assert screen.shows(b"again", times=2)
    screen.type(b"\x03")
    assert screen.shows(b"> ")
    screen.type(b"echo $?; exit 7\n")
    assert screen.shows(b"130")
    assert screen.terminal.wait(PATIENCE) == 7


def test_a_wasi_program_in_the_background_stops_when_it_reads(machine: Machine) -> None:
    screen = open_shell(machine)
    screen.type(b"copy & sleep 1; jobs\n")
    assert screen.shows(b"Stopped")
    screen.type(b"fg\n")
    screen.type(b"now\n")
    assert screen.shows(b"now", times=2)
    screen.type(b"\x04")
    assert screen.shows(b"> ")
    screen.terminal.close()
