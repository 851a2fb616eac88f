"""Pseudo-terminals.

Owns `Terminal` (the state that both sides share), `TerminalFile` (the slave side, used by programs)
and `TerminalMaster`. Rules: output waits while the master does not read (64 KiB); echo is dropped
then. Input waits while the program does not read. After the master is closed, slave reads return
end of file and slave writes fail with EIO. After the last slave is closed, master reads fail with
EIO. A terminal is charged to the ledger until both sides are closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.line_discipline import (
    ICANON,
    TOSTOP,
    VMIN,
    VTIME,
    LineDiscipline,
)
from wasmsand.kernel.flags import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import PIPE_CAPACITY, TERMINAL_COST, TERMINAL_INPUT_MAX
from wasmsand.kernel.vfs import Namespace, Node, Stat
from wasmsand.kernel.wait import WaitQueue


class Terminal:
    """The state of one pseudo-terminal."""

    __slots__ = (
        "_charged",
        "_ledger",
        "_typed",
        "changed",
        "columns",
        "device",
        "discipline",
        "foreground_group",
        "hang_up",
        "index",
        "master_open",
        "namespace",
        "node",
        "output",
        "rows",
        "send_signal",
        "session",
        "slaves",
        "slaves_seen",
    )

    def __init__(
        self,
        index: int,
        device: int,
        namespace: Namespace,
        node: Node,
        send_signal: Callable[[int, int], None],
        hang_up: Callable[[Terminal], None],
        ledger: Ledger,
    ) -> None:
        ledger.add_object(TERMINAL_COST)
        self._ledger = ledger
        self._charged = True
        self.index = index
        self.device = device
        self.namespace = namespace
        self.node = node
        """The /dev/pts entry, retained by the master and by each open slave."""
        namespace.retain(node)
        self.discipline = LineDiscipline()
        self.rows = self.columns = 0  # until set
        self.session = 0
        self.foreground_group = 0
        self.output = bytearray()
        self.changed = WaitQueue()
        self.master_open = True
        self.slaves = 0
        self.slaves_seen = False
        self._typed = bytearray()
        self.send_signal = send_signal
        """(process group, signal): called when a key or a resize sends a signal."""
        self.hang_up = hang_up
        """Called when the master is closed."""

    def type_keys(self, data: bytes) -> None:
        """Input from the keyboard. Bytes that do not fit wait until the program reads."""
        self._typed += data
        self.feed()

    def typing_room(self) -> int:
        """Bytes that a guest may write to the master before it must wait."""
        return max(0, TERMINAL_INPUT_MAX - len(self._typed))

    def feed(self) -> None:
        """Pass waiting input to the line discipline, as far as it has room."""
        if not self._typed:
            return
        taken, echo, signals = self.discipline.receive(bytes(self._typed))
        del self._typed[:taken]
        self.output += echo[: max(0, PIPE_CAPACITY - len(self.output))]
        for signo in dict.fromkeys(signals):  # signals do not queue
            if self.foreground_group:
                self.send_signal(self.foreground_group, signo)
        self.changed.wake()

    def resize(self, rows: int, columns: int) -> None:
        """Set the window size; send SIGWINCH to the foreground group if it changed."""
        if (rows, columns) == (self.rows, self.columns):
            return
        self.rows, self.columns = rows, columns
        if self.foreground_group:
            self.send_signal(self.foreground_group, 28)

    def close_master(self) -> None:
        """The master is closed: hang up. Idempotent."""
        if self.master_open:
            self.master_open = False
            self.changed.wake()
            self.hang_up(self)
            self.namespace.release(self.node)
            self.leave_ledger()

    def leave_ledger(self) -> None:
        """A side was closed. When both are, remove the charge. This may be called twice: the
        hang-up ends processes, which close the slave side."""
        if self._charged and not self.master_open and not self.slaves:
            self._charged = False
            self._ledger.drop_object(TERMINAL_COST)


class TerminalFile(OpenFile):
    """The slave side, opened by a program (/dev/pts/N, /dev/tty)."""

    __slots__ = ("terminal",)

    kind: ClassVar[str] = "tty"
    writes_all: ClassVar[bool] = True

    def __init__(self, terminal: Terminal, flags: int) -> None:
        super().__init__(flags)
        self.terminal = terminal
        terminal.namespace.retain(terminal.node)
        terminal.slaves += 1
        terminal.slaves_seen = True

    @property
    def node(self) -> Node | None:
        return self.terminal.node

    def read(self, count: int) -> bytes:
        terminal = self.terminal
        if count == 0:
            return b""
        taken = terminal.discipline.take(count)
        if taken is not None:
            terminal.feed()
            return taken
        if not terminal.master_open:
            return b""
        raise self.wait_or_fail(terminal.changed)

    def read_timeout(self) -> int:
        """How long a read may wait, in nanoseconds, when too little input is available; 0: no
        limit.

        For a non-canonical read this is VTIME; with VMIN it counts from the first byte.
        """
        discipline = self.terminal.discipline
        termios = discipline.termios
        if termios.lflag & ICANON or (termios.cc[VMIN] and not discipline.available()):
            return 0
        return termios.cc[VTIME] * 100_000_000

    def read_after_timeout(self, count: int) -> bytes:
        """The available input when `read_timeout` has passed."""
        taken = self.terminal.discipline.take_now(count)
        self.terminal.feed()
        return taken

    @property
    def stops_background_writers(self) -> bool:
        """Whether a write by a background process sends SIGTTOU (stty tostop)."""
        return bool(self.terminal.discipline.termios.lflag & TOSTOP)

    def write(self, data: bytes) -> int:
        terminal = self.terminal
        if not terminal.master_open:
            raise KernelError(Errno.EIO, "terminal hung up")
        room = PIPE_CAPACITY - len(terminal.output)
        if room <= 0 or terminal.discipline.output_stopped:
            raise self.wait_or_fail(terminal.changed)
        # ONLCR at most doubles the output, so half the room is always enough.
        part = data[: max(1, room // 2)]
        terminal.output += terminal.discipline.process_output(part)
        terminal.changed.wake()
        return len(part)

    def poll(self) -> int:
        terminal = self.terminal
        if not terminal.master_open:
            return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLHUP | POLLERR
        bits = 0
        if terminal.discipline.readable():
            bits |= POLLIN | POLLRDNORM
        if len(terminal.output) < PIPE_CAPACITY and not terminal.discipline.output_stopped:
            bits |= POLLOUT | POLLWRNORM
        return bits

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.terminal.changed,)

    def stat(self) -> Stat:
        return self.terminal.namespace.stat(self.terminal.node)

    def release(self) -> None:
        terminal = self.terminal
        terminal.slaves -= 1
        terminal.changed.wake()
        terminal.namespace.release(terminal.node)
        terminal.leave_ledger()


class TerminalMaster(OpenFile):
    """The master side: writing types, reading returns the output."""

    __slots__ = ("_node", "terminal")

    kind: ClassVar[str] = "ptmx"
    writes_all: ClassVar[bool] = True

    def __init__(self, terminal: Terminal, flags: int, node: Node) -> None:
        super().__init__(flags)
        self.terminal = terminal
        self._node = node
        terminal.namespace.retain(node)

    @property
    def node(self) -> Node | None:
        return self._node

    def _abandoned(self) -> bool:
        return self.terminal.slaves_seen and self.terminal.slaves == 0

    def read(self, count: int) -> bytes:
        terminal = self.terminal
        if terminal.output:
            taken = bytes(terminal.output[:count])
            del terminal.output[:count]
            terminal.changed.wake()
            return taken
        if self._abandoned():
            raise KernelError(Errno.EIO)
        raise self.wait_or_fail(terminal.changed)

    def write(self, data: bytes) -> int:
        part = data[: self.terminal.typing_room()]
        if data and not part:
            raise self.wait_or_fail(self.terminal.changed)
        self.terminal.type_keys(part)
        return len(part)

    def poll(self) -> int:
        bits = 0
        if self.terminal.typing_room():
            bits |= POLLOUT | POLLWRNORM
        if self.terminal.output:
            bits |= POLLIN | POLLRDNORM
        if self._abandoned():
            bits |= POLLHUP
        return bits

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.terminal.changed,)

    def stat(self) -> Stat:
        return self.terminal.namespace.stat(self._node)

    def release(self) -> None:
        self.terminal.close_master()
        self.terminal.namespace.release(self._node)
