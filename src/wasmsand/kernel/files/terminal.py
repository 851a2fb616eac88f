"""Pseudo-terminals.

Owns `Terminal` (the state both sides share), the program's side `TerminalFile` and
the controlling side `TerminalMaster`. Rules: output waits when the master does not
read (64 KiB), input is bounded by the line discipline; a background process that
reads gets SIGTTIN; when the master is gone, reads end and writes give EIO.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.anonymous import anonymous_stat
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.line_discipline import ICANON, VTIME, LineDiscipline
from wasmsand.kernel.flags import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRNORM,
    S_IFCHR,
)
from wasmsand.kernel.limits import PIPE_CAPACITY
from wasmsand.kernel.vfs import Node, Stat
from wasmsand.kernel.wait import WaitQueue, WouldBlock


class Terminal:
    """A pseudo-terminal's shared state."""

    __slots__ = ("changed", "columns", "discipline", "device", "foreground_group", "hang_up",
                 "index", "locked", "master_open", "output", "rows", "send_signal", "session",
                 "slaves", "stat")

    def __init__(
        self, index: int, uid: int, gid: int, now_ns: int,
        send_signal: Callable[[int, int], None],
        hang_up: Callable[[Terminal], None],
    ) -> None:
        self.index = index
        self.discipline = LineDiscipline()
        self.rows = 24
        self.columns = 80
        self.session = 0
        self.foreground_group = 0
        self.output = bytearray()
        self.changed = WaitQueue()
        self.master_open = True
        self.slaves = 0
        self.locked = False
        self.send_signal = send_signal
        """(process group, signal): called when a key or a resize sends one."""
        self.hang_up = hang_up
        """Called when the master side is closed."""
        self.device = (136 << 8) | index
        fallback = anonymous_stat(S_IFCHR | 0o620, uid, gid, now_ns, rdev=self.device)
        self.stat: Callable[[], Stat] = lambda: fallback
        """fstat of the program's side: that of its /dev/pts entry, once it has one."""

    def type_keys(self, data: bytes) -> None:
        """Bytes from the keyboard side."""
        echo, signals = self.discipline.receive(data)
        self.output += echo
        for signo in signals:
            if self.foreground_group:
                self.send_signal(self.foreground_group, signo)
        self.changed.wake()

    def resize(self, rows: int, columns: int) -> None:
        """A new window size; the foreground group is told (SIGWINCH)."""
        if (rows, columns) == (self.rows, self.columns):
            return
        self.rows, self.columns = rows, columns
        if self.foreground_group:
            self.send_signal(self.foreground_group, 28)


class TerminalFile(OpenFile):
    """A terminal opened by a program (/dev/pts/N, /dev/tty)."""

    __slots__ = ("terminal",)

    kind: ClassVar[str] = "tty"
    writes_all: ClassVar[bool] = True

    def __init__(self, terminal: Terminal, flags: int) -> None:
        super().__init__(flags)
        self.terminal = terminal
        terminal.slaves += 1

    def read(self, count: int) -> bytes:
        terminal = self.terminal
        if count == 0:
            return b""
        taken = terminal.discipline.take(count)
        if taken is not None:
            return taken
        if not terminal.master_open:
            return b""
        raise self.wait_or_fail(terminal.changed)

    def read_timeout(self) -> int:
        """VTIME in nanoseconds for a non-canonical read, 0 for none."""
        termios = self.terminal.discipline.termios
        return 0 if termios.lflag & ICANON else termios.cc[VTIME] * 100_000_000

    def write(self, data: bytes) -> int:
        terminal = self.terminal
        if not terminal.master_open:
            raise KernelError(Errno.EIO, "terminal hung up")
        room = PIPE_CAPACITY - len(terminal.output)
        if room <= 0:
            raise self.wait_or_fail(terminal.changed)
        # Newlines grow on output; half the room is always enough.
        part = data[: max(1, room // 2)]
        terminal.output += terminal.discipline.process_output(part)
        terminal.changed.wake()
        return len(part)

    def poll(self) -> int:
        terminal = self.terminal
        bits = 0
        if terminal.discipline.readable():
            bits |= POLLIN | POLLRDNORM
        if not terminal.master_open:
            bits |= POLLHUP | POLLIN | POLLERR
        elif len(terminal.output) < PIPE_CAPACITY:
            bits |= POLLOUT | POLLWRNORM
        return bits

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.terminal.changed,)

    def stat(self) -> Stat:
        return self.terminal.stat()

    def release(self) -> None:
        self.terminal.slaves -= 1
        self.terminal.changed.wake()


class TerminalMaster(OpenFile):
    """The controlling side: what is typed is written, what is shown is read."""

    __slots__ = ("_node", "_stat", "terminal")

    kind: ClassVar[str] = "ptmx"
    writes_all: ClassVar[bool] = True

    def __init__(self, terminal: Terminal, flags: int, stat: Stat) -> None:
        super().__init__(flags)
        self.terminal = terminal
        self._stat = stat
        self._node: Node | None = None

    def read(self, count: int) -> bytes:
        terminal = self.terminal
        if terminal.output:
            taken = bytes(terminal.output[:count])
            del terminal.output[:count]
            terminal.changed.wake()
            return taken
        if terminal.slaves == 0 and terminal.session == 0 and terminal.locked:
            raise KernelError(Errno.EIO)
        if self.nonblocking:
            raise KernelError(Errno.EAGAIN)
        raise WouldBlock((terminal.changed,))

    def write(self, data: bytes) -> int:
        part = data[:4096]
        self.terminal.type_keys(part)
        return len(part)

    def poll(self) -> int:
        bits = POLLOUT | POLLWRNORM
        if self.terminal.output:
            bits |= POLLIN | POLLRDNORM
        return bits

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.terminal.changed,)

    def stat(self) -> Stat:
        return self._stat

    def release(self) -> None:
        self.terminal.master_open = False
        self.terminal.changed.wake()
        self.terminal.hang_up(self.terminal)
