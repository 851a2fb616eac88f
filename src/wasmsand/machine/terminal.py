"""A command on a pseudo-terminal, driven by the host.

Owns `SandboxTerminal`, which terminal emulators and `sandbox.pty()` use. Rules: `read`, `write` and
`wait` block the calling host thread, without the lock; everything else returns at once. Only one
thread at a time may read. Memory is bounded in both directions: output that the host does not read
stops the program, and `write` waits while the program does not read. When a `SandboxTerminal` is
garbage-collected, the terminal hangs up.
"""

from __future__ import annotations

import os
import weakref
from _thread import start_new_thread
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.terminal import Terminal, TerminalFile
from wasmsand.kernel.flags import O_RDWR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.wait import WaitQueue
from wasmsand.machine.command import CommandRequest, exit_code_of
from wasmsand.machine.parking import Parker

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

READ_BYTES: Final = 65536


class _Life:
    """What outlives a `SandboxTerminal` that nobody holds any more. Guarded by the lock."""

    def __init__(self, machine: Machine, terminal: Terminal) -> None:
        self.machine = machine
        self.terminal = terminal
        self.has_ended = False
        self.end_queue = WaitQueue()

    def end(self) -> None:
        """The command's first process has ended."""
        self.has_ended = True
        self.end_queue.wake()
        self.terminal.changed.wake()

    def hang_up(self) -> None:
        """Close the host's side."""
        with self.machine.lock:
            self.terminal.close_master()


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
        with machine.lock:
            terminal = machine.kernel.new_terminal(machine.identity.uid, machine.identity.gid)
            terminal.rows, terminal.columns = rows, columns
            file = TerminalFile(terminal, O_RDWR)
        self._terminal = terminal
        self._life = _Life(machine, terminal)
        files = dict.fromkeys((0, 1, 2), file)
        try:
            driver = machine.make_process(request, files, self._life.end, terminal=terminal)
            driver.run_on_pool()
        except BaseException:  # also Ctrl-C in the calling thread
            with machine.lock:
                file.dispose()
                terminal.close_master()
            raise
        self._process: Process = driver.process
        self._finalizer = weakref.finalize(self, _abandon, self._life, os.getpid())
        self._finalizer.atexit = False

    @property
    def pid(self) -> int:
        """The pid of the command's first process."""
        return self._process.pid

    def read(self, count: int = READ_BYTES, timeout_seconds: float | None = None) -> bytes:
        """Wait for terminal output and return it; empty when the command has ended or the terminal
        was closed. Raises `TimeoutError`."""
        clock, terminal = self._machine.kernel.clock, self._terminal
        deadline = clock.deadline(timeout_seconds)
        parker = Parker(self._machine.lock, clock)
        with self._machine.lock:
            while not terminal.output:
                if self._life.has_ended or not terminal.master_open:
                    return b""
                if deadline is not None and clock.monotonic() >= deadline:
                    raise TimeoutError
                parker.park((terminal.changed,), deadline)
            taken = bytes(terminal.output[:count])
            del terminal.output[:count]
            terminal.changed.wake()
            return taken

    def write(self, data: bytes, timeout_seconds: float | None = None) -> int:
        """Type `data` on the keyboard; wait while the program leaves what was typed before.

        Returns the number of bytes typed: all of them, or fewer if `timeout_seconds` passed. EPIPE
        if the command has ended, EBADF if the terminal was closed.
        """
        clock, terminal = self._machine.kernel.clock, self._terminal
        deadline = clock.deadline(timeout_seconds)
        parker = Parker(self._machine.lock, clock)
        done = 0
        while done < len(data):
            with self._machine.lock:  # for one piece, because processing it takes time
                if not terminal.master_open:
                    raise KernelError(Errno.EBADF, "the terminal was closed")
                if self._life.has_ended:
                    raise KernelError(Errno.EPIPE, "the command has ended")
                room = terminal.typing_room()
                if room:
                    piece = data[done : done + room]
                    done += len(piece)
                    terminal.type_keys(piece)
                elif deadline is not None and clock.monotonic() >= deadline:
                    break
                else:
                    parker.park((terminal.changed,), deadline)
        return done

    def resize(self, rows: int, columns: int) -> None:
        """Change the window size."""
        with self._machine.lock:
            self._terminal.resize(rows, columns)

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Wait for the exit code; None if the program still runs after `timeout_seconds`."""
        clock, life = self._machine.kernel.clock, self._life
        deadline = clock.deadline(timeout_seconds)
        parker = Parker(self._machine.lock, clock)
        with self._machine.lock:
            while not life.has_ended:
                if deadline is not None and clock.monotonic() >= deadline:
                    return None
                parker.park((life.end_queue,), deadline)
        return exit_code_of(self._process.exit_status)

    def kill(self) -> None:
        """End every process of the command, including background processes."""
        self._machine.end_job(self._process.job)

    def close(self) -> None:
        """Hang up the terminal. Idempotent."""
        self._finalizer.detach()
        self._life.hang_up()


def _abandon(life: _Life, owner: int) -> None:
    """The collector may run on a thread that holds the lock, so a new thread takes the lock. A
    forked host process has nothing to clean up."""
    if os.getpid() == owner and life.terminal.master_open:
        start_new_thread(life.hang_up, ())
