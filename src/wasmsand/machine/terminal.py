"""A command on a pseudo-terminal, driven by the host.

Owns `HostTerminal`: what a terminal emulator or `wasmsand shell` holds. Rules:
`read` blocks the calling host thread; everything else returns at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.files.terminal import Terminal, TerminalFile
from wasmsand.kernel.flags import O_RDWR
from wasmsand.kernel.process.process import Process
from wasmsand.machine.command import exit_code_of
from wasmsand.machine.parking import Parker

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine


class HostTerminal:
    """One session on a terminal."""

    def __init__(
        self,
        machine: Machine,
        argv: tuple[bytes, ...],
        environ: tuple[bytes, ...],
        cwd: bytes,
        rows: int,
        columns: int,
    ) -> None:
        self._machine = machine
        self._parker = Parker(machine.lock)
        self._ended = threading.Event()
        with machine.lock:
            self._terminal: Terminal = machine.kernel.new_terminal(
                machine.identity.uid, machine.identity.gid
            )
            self._terminal.rows, self._terminal.columns = rows, columns
            file = TerminalFile(self._terminal, O_RDWR)
        files = dict.fromkeys((0, 1, 2), file)
        try:
            guest = machine.make_process(
                argv, environ, cwd, files, self._end, terminal=self._terminal
            )
            guest.start()
        except KernelError:
            with machine.lock:
                file.dispose()
                self._terminal.close_master()
            raise
        self._process: Process = guest.process

    def _end(self) -> None:
        self._ended.set()
        self._terminal.changed.wake()

    def read(self, count: int = 65536) -> bytes:
        """What the terminal shows next; waits for it; empty when the session has ended."""
        with self._machine.lock:
            while not self._terminal.output:
                if self._ended.is_set():
                    return b""
                self._parker.park((self._terminal.changed,), None)
            taken = bytes(self._terminal.output[:count])
            del self._terminal.output[:count]
            self._terminal.changed.wake()
            return taken

    def write(self, data: bytes) -> None:
        """Type at the keyboard."""
        with self._machine.lock:
            self._terminal.type_keys(data)

    def resize(self, rows: int, columns: int) -> None:
        """The window has another size."""
        with self._machine.lock:
            self._terminal.resize(rows, columns)

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None when it still runs after `timeout` seconds."""
        if not self._ended.wait(timeout):
            return None
        return exit_code_of(self._process.exit_status)

    def close(self) -> None:
        """Hang up."""
        with self._machine.lock:
            self._terminal.close_master()
