"""A program of a machine in this process, as a `BackendProcess` or a `BackendTerminal`.

Owns `LocalProcess` and `LocalTerminal`. Rules: as in `local`.
"""

from __future__ import annotations

from wasmsand.kernel.errno import KernelError
from wasmsand.machine import SandboxTerminal, StreamedProcess
from wasmsand.sdk.backend import STDIN, Ended, Output
from wasmsand.sdk.errors import command_error, command_errors


class LocalProcess:
    """A program in the machine, as a `BackendProcess`."""

    def __init__(self, process: StreamedProcess, program: str) -> None:
        self._process = process
        self._program = program

    @property
    def streamed(self) -> StreamedProcess:
        """The program, as the machine knows it."""
        return self._process

    @property
    def pid(self) -> int:
        """See `BackendProcess`."""
        return self._process.pid

    def now(self) -> float:
        """See `BackendProcess`."""
        return self._process.now()

    def uncounted_seconds(self) -> float:
        """See `BackendProcess`."""
        return self._process.uncounted_seconds()

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        return self._process.read(timeout_seconds)

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...] | None:
        """See `BackendProcess`."""
        try:
            return self._process.exchange(request, fd, awaited, timeout_seconds)
        except KernelError as error:
            raise command_error(error, self._program) from None

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """See `BackendProcess`."""
        with command_errors(self._program):
            return self._process.write(data, fd, timeout_seconds)

    def close_input(self, fd: int = STDIN) -> None:
        """See `BackendProcess`."""
        self._process.close_input(fd)

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """See `BackendProcess`."""
        return self._process.wait(timeout_seconds)

    def take_notices(self) -> tuple[str, ...]:
        """See `BackendProcess`."""
        return self._process.take_notices()

    def kill(self) -> None:
        """See `BackendProcess`."""
        self._process.kill()


class LocalTerminal:
    """A program on a terminal of the machine, as a `BackendTerminal`."""

    def __init__(self, terminal: SandboxTerminal, program: str) -> None:
        self._terminal = terminal
        self._program = program

    @property
    def pid(self) -> int:
        """See `BackendTerminal`."""
        return self._terminal.pid

    def read(self, count: int = 65536, timeout_seconds: float | None = None) -> bytes:
        """See `BackendTerminal`."""
        return self._terminal.read(count, timeout_seconds)

    def write(self, data: bytes, timeout_seconds: float | None = None) -> int:
        """See `BackendTerminal`."""
        with command_errors(self._program):
            return self._terminal.write(data, timeout_seconds)

    def resize(self, rows: int, columns: int) -> None:
        """See `BackendTerminal`."""
        self._terminal.resize(rows, columns)

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """See `BackendTerminal`."""
        return self._terminal.wait(timeout_seconds)

    def kill(self) -> None:
        """See `BackendTerminal`."""
        self._terminal.kill()

    def close(self) -> None:
        """See `BackendTerminal`."""
        self._terminal.close()
