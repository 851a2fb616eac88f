"""The real kernel for tests, without WebAssembly, and with a clock that tests move.

`System` makes processes as the host and as guests do, and has shortcuts for kernel tests.
"""

from __future__ import annotations

from collections.abc import Callable

from wasmsand.kernel.clock import Clock, ManualClock
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.anonymous import AnonymousInodes
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.opening import open_path
from wasmsand.kernel.files.pipe import PipeAccount, PipeEnd, make_pipe
from wasmsand.kernel.flags import S_IFIFO
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process import life
from wasmsand.kernel.process.delivery import post
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import SignalAction, SignalInfo
from wasmsand.kernel.vfs import ROOT, ImageBuilder, TreeFs, standard_tree
from wasmsand.kernel.wait import WouldBlock

USER = 1000
_BEGINNING_NS = 1_000_000_000_000
HANDLER = 77
"""Any function pointer: kernel tests never run it."""


def pipe(flags: int = 0, account: PipeAccount | None = None) -> tuple[PipeEnd, PipeEnd]:
    """The read end and the write end of a new pipe."""
    stat = AnonymousInodes(Clock()).new(S_IFIFO | 0o600, USER, USER)
    return make_pipe(account or PipeAccount(), flags, stat)


class System:
    """A kernel and its time."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = ManualClock(_BEGINNING_NS, _BEGINNING_NS)
        self.limits = limits or Limits()
        builder = ImageBuilder()
        standard_tree(builder)
        root = TreeFs(builder.build(), self.limits, self.clock.realtime)
        self.kernel = Kernel(root, self.limits, clock=self.clock)

    def command(self, uid: int = USER) -> Process:
        """A process as the host starts one: a child of init, with its own session and group."""
        namespace = self.kernel.namespace
        home = namespace.resolve(ROOT, namespace.root, b"/tmp")
        return self.kernel.new_process(Identity.of(uid, uid), home, ())

    def fork(self, parent: Process) -> Process:
        return life.fork(self.kernel, parent.first_thread)

    def send(self, process: Process, *signals: int) -> None:
        """Send a signal that has no particular sender."""
        for signo in signals:
            post(self.kernel, process, SignalInfo(signo))

    def handle(self, process: Process, signo: int, flags: int = 0, mask: int = 0) -> None:
        """Give a signal a handler."""
        process.signals.set_action(signo, SignalAction(HANDLER, flags, mask))

    def open(self, process: Process, path: bytes, flags: int, mode: int = 0o644) -> OpenFile:
        """Open as open(2) does, but without an fd."""
        return open_path(self.kernel, process.first_thread, process.cwd, path, flags, mode)

    def make_file(self, path: bytes, content: bytes = b"", mode: int = 0o644) -> None:
        """Make a file that belongs to the user."""
        namespace = self.kernel.namespace
        node = namespace.open_node(ROOT, namespace.root, path, 0o101, mode)
        namespace.chown(ROOT, node, USER, USER)
        namespace.chmod(ROOT, node, mode)
        if content:
            namespace.write(ROOT, node, 0, content)


def errno_of(action: Callable[..., object], *arguments: object) -> Errno:
    """The error with which `action` fails."""
    try:
        action(*arguments)
    except KernelError as error:
        return error.errno
    raise AssertionError("no error")


def blocks(action: Callable[[], object]) -> WouldBlock:
    """`action` must block; returns what it waits for."""
    try:
        action()
    except WouldBlock as block:
        return block
    raise AssertionError("did not block")


class Woken:
    """Counts the wake-ups of a wait queue."""

    def __init__(self, block: WouldBlock) -> None:
        self.count = 0
        for queue in block.queues:
            queue.add(self._wake)

    def _wake(self) -> None:
        self.count += 1

    def __bool__(self) -> bool:
        return self.count > 0
