"""Process groups, sessions and controlling terminals.

Owns setpgid, setsid, and the terminal's foreground group. The rules are those of POSIX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.terminal import Terminal
from wasmsand.kernel.process.delivery import signal_group
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import SIG_IGN, Signal, mask_of
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.wait import WouldBlock

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel


def set_group(kernel: Kernel, caller: Process, pid: int, group: int) -> None:
    """setpgid(2)."""
    if group < 0:
        raise KernelError(Errno.EINVAL)
    target = caller if pid in (0, caller.pid) else kernel.processes.get(pid)
    if target is not caller:
        if target.parent is not caller:
            raise KernelError(Errno.ESRCH)
        if target.session != caller.session:
            raise KernelError(Errno.EPERM)
        if target.has_execed:
            raise KernelError(Errno.EACCES)
    if target.session == target.pid:
        raise KernelError(Errno.EPERM)
    group = group or target.pid
    if group != target.pid and not any(
        p.session == caller.session for p in kernel.processes.group(group)
    ):
        raise KernelError(Errno.EPERM)
    target.group = group


def set_session(kernel: Kernel, process: Process) -> int:
    """setsid(2): a new session and group, without a terminal."""
    if kernel.processes.group(process.pid):
        raise KernelError(Errno.EPERM)
    process.session = process.group = process.pid
    process.terminal = None
    return process.pid


def take_terminal(process: Process, terminal: Terminal) -> None:
    """TIOCSCTTY: make it the controlling terminal of a session leader."""
    if process.session != process.pid or terminal.session not in (0, process.session):
        raise KernelError(Errno.EPERM)
    if process.terminal not in (None, terminal):
        raise KernelError(Errno.EPERM)
    terminal.session = process.session
    terminal.foreground_group = process.group
    process.terminal = terminal


def leave_terminal(kernel: Kernel, process: Process) -> None:
    """TIOCNOTTY, or the death of a session leader. A session leader releases the terminal for its
    whole session and sends SIGHUP to the foreground group."""
    terminal = process.terminal
    process.terminal = None
    if terminal is None or process.session != process.pid or terminal.session != process.session:
        return
    foreground = terminal.foreground_group
    terminal.session = terminal.foreground_group = 0
    terminal.changed.wake()
    for member in kernel.processes.session(process.session):
        member.terminal = None
    if foreground:
        signal_group(kernel, foreground, Signal.SIGHUP)
        signal_group(kernel, foreground, Signal.SIGCONT)


def set_foreground(kernel: Kernel, thread: Thread, terminal: Terminal, group: int) -> None:
    """tcsetpgrp: allowed for members of the terminal's session."""
    process = thread.process
    if terminal.session != process.session:
        raise KernelError(Errno.ENOTTY)
    require_foreground_to_change(kernel, thread, terminal)
    if group < 0:
        raise KernelError(Errno.EINVAL)
    members = kernel.processes.group(group)
    if not members:
        raise KernelError(Errno.ESRCH)
    if members[0].session != process.session:
        raise KernelError(Errno.EPERM)
    terminal.foreground_group = group


def require_foreground_to_change(kernel: Kernel, thread: Thread, terminal: Terminal) -> None:
    """Send SIGTTOU to a background process that changes its terminal."""
    _require_foreground(kernel, thread, terminal, Signal.SIGTTOU, fails=False)


def require_foreground_to_read(kernel: Kernel, thread: Thread, terminal: Terminal) -> None:
    """Send SIGTTIN to a background process that reads its terminal."""
    _require_foreground(kernel, thread, terminal, Signal.SIGTTIN, fails=True)


def _require_foreground(
    kernel: Kernel, thread: Thread, terminal: Terminal, signo: int, *, fails: bool
) -> None:
    process = thread.process
    if terminal.session != process.session or process.group == terminal.foreground_group:
        return
    signals = thread.signals
    if signals.action(signo).handler == SIG_IGN or signals.mask & mask_of(signo):
        if fails:
            raise KernelError(Errno.EIO)
        return
    if kernel.processes.is_orphaned(process.group):
        raise KernelError(Errno.EIO)
    signal_group(kernel, process.group, signo)
    # The process is stopped, or a handler is pending: in both cases the call is made again.
    raise WouldBlock((thread.signal_queue,))
