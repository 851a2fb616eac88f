"""A command on a pseudo-terminal, driven by the host.

Owns `SandboxTerminal`, which terminal emulators and `wasmsand shell` use. Rules: `read` and `wait`
block the calling host thread; everything else returns at once. Only one thread at a time may
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.files.terminal import Terminal, TerminalFile
from wasmsand.kernel.flags import O_RDWR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.wait import WaitQueue
from wasmsand.machine.command import (
    CommandRequest,
    exit_code_of,
)
from wasmsand.machine.parking import Parker

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine


class SandboxTerminal:
    """A command and its pseudo-terminal."""

    def __init__(
        self,
        machine: Machine,
        request: CommandRequest,
        rows: int,
        columns: int,
    ) -> None:
        self._machine = machine
        self._parker = Parker(machine.lock, machine.kernel.clock)
        # Guarded by the lock:
        self._has_ended = False
        self._end_queue = WaitQueue()
        with machine.lock:
            self._terminal: Terminal = machine.kernel.new_terminal(
                machine.identity.uid, machine.identity.gid
            )
            self._terminal.rows, self._terminal.columns = rows, columns
            file = TerminalFile(self._terminal, O_RDWR)
        files = dict.fromkeys((0, 1, 2), file)
        try:
            driver = machine.make_process(request, files, self._end, terminal=self._terminal)
            driver.run_on_pool()
        except KernelError:
            with machine.lock:
                file.dispose()
                self._terminal.close_master()
            raise
        self._process: Process = driver.process

    def _end(self) -> None:
        self._has_ended = True
        self._end_queue.wake()
        self._terminal.changed.wake()

    def read(self, count: int = 65536) -> bytes:
        """Wait for terminal output and return it; empty when the command has ended."""
        with self._machine.lock:
            while not self._terminal.output:
                if self._has_ended:
                    return b""
                self._parker.park((self._terminal.changed,), None)
            taken = bytes(self._terminal.output[:count])
            del self._terminal.output[:count]
            self._terminal.changed.wake()
            return taken

    def write(self, data: bytes) -> None:
        """Type `data` on the keyboard."""
        with self._machine.lock:
            self._terminal.type_keys(data)

    def resize(self, rows: int, columns: int) -> None:
        """Change the window size."""
        with self._machine.lock:
            self._terminal.resize(rows, columns)

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Wait for the exit code; None if the program still runs after `timeout_seconds`."""
        clock = self._machine.kernel.clock
        deadline = clock.deadline(timeout_seconds)
        parker = Parker(self._machine.lock, clock)
        with self._machine.lock:
            while not self._has_ended:
                if deadline is not None and clock.monotonic() >= deadline:
                    return None
                parker.park((self._end_queue,), deadline)
        return exit_code_of(self._process.exit_status)

    def close(self) -> None:
        """Hang up the terminal."""
        with self._machine.lock:
            self._terminal.close_master()
