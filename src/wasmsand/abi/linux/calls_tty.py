"""ioctl: terminals, and requests common to all files.

Owns the ioctl numbers and their decoding. Rules: a request that a file does not support is ENOTTY.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wasmsand.abi.linux.calls_interface import interface_ioctl
from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.structs import WINSIZE
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.available import readable_bytes
from wasmsand.kernel.files.line_discipline import Termios
from wasmsand.kernel.files.terminal import Terminal, TerminalFile, TerminalMaster
from wasmsand.kernel.flags import O_NONBLOCK
from wasmsand.kernel.process import groups
from wasmsand.kernel.sockets.base import Socket
from wasmsand.kernel.sockets.stream import StreamSocket

_TCGETS, _TCSETS, _TCSETSW, _TCSETSF = range(0x5401, 0x5405)
_TCSBRK, _TCXONC, _TCFLSH = 0x5409, 0x540A, 0x540B
_TIOCSCTTY, _TIOCGPGRP, _TIOCSPGRP, _TIOCOUTQ = 0x540E, 0x540F, 0x5410, 0x5411
_TCIFLUSH, _TCOFLUSH, _TCIOFLUSH = range(3)
_TIOCGWINSZ, _TIOCSWINSZ = 0x5413, 0x5414
_FIONREAD, _FIONBIO, _TIOCNOTTY, _TCSBRKP, _TIOCGSID = 0x541B, 0x5421, 0x5422, 0x5425, 0x5429
_FIONCLEX, _FIOCLEX = 0x5450, 0x5451
_SIOCATMARK: Final = 0x8905
_INT_MAX: Final = 0x7FFF_FFFF
_TIOCGPTN, _TIOCSPTLCK = 0x80045430, 0x40045431

_Request = Callable[[CallContext, Terminal, int], int]


def ioctl(context: CallContext, fd: int, request: int, argument: int) -> int:
    """ioctl(2)."""
    file = context.file(fd)
    if request in (_FIOCLEX, _FIONCLEX):
        context.process.fds.set_close_on_exec(fd, request == _FIOCLEX)
        return 0
    if request == _FIONBIO:
        wanted = O_NONBLOCK if context.memory.read_u32(argument) else 0
        file.flags = file.flags & ~O_NONBLOCK | wanted
        return 0
    if request == _FIONREAD:
        context.memory.write_u32(argument, min(readable_bytes(file), _INT_MAX))
        return 0
    if request == _SIOCATMARK and isinstance(file, StreamSocket) and not file.is_unix:
        at_mark = file.rx is not None and file.rx.at_mark
        context.memory.write_u32(argument, int(at_mark))
        return 0
    if isinstance(file, Socket):
        return interface_ioctl(context, request, argument)
    if isinstance(file, TerminalFile):
        handler = _TERMINAL.get(request) or _BOTH.get(request)
    elif isinstance(file, TerminalMaster):
        handler = _MASTER.get(request) or _BOTH.get(request)
    else:
        raise KernelError(Errno.ENOTTY)
    if handler is None:
        raise KernelError(Errno.ENOTTY, f"ioctl {request:#x}")
    if not file.terminal.master_open:
        raise KernelError(Errno.EIO, "terminal hung up")
    return handler(context, file.terminal, argument)


def _get_settings(context: CallContext, terminal: Terminal, address: int) -> int:
    context.memory.write(address, terminal.discipline.termios.pack())
    return 0


def _set_settings(context: CallContext, terminal: Terminal, address: int) -> int:
    return _change_settings(context, terminal, address, flush=False)


def _set_settings_and_flush(context: CallContext, terminal: Terminal, address: int) -> int:
    return _change_settings(context, terminal, address, flush=True)


def _change_settings(context: CallContext, terminal: Terminal, address: int, *, flush: bool) -> int:
    wanted = context.memory.read(address, Termios.SIZE)
    groups.require_foreground_to_change(context.kernel, context.thread, terminal)
    if flush:
        terminal.discipline.flush_input()
    terminal.discipline.change(wanted)
    terminal.feed()
    terminal.changed.wake()
    return 0


def _get_size(context: CallContext, terminal: Terminal, address: int) -> int:
    context.memory.pack(WINSIZE, address, terminal.rows, terminal.columns, 0, 0)
    return 0


def _set_size(context: CallContext, terminal: Terminal, address: int) -> int:
    rows, columns, _, _ = context.memory.unpack(WINSIZE, address)
    terminal.resize(rows, columns)
    return 0


def _get_foreground(context: CallContext, terminal: Terminal, address: int) -> int:
    return _tell_session(context, terminal, address, terminal.foreground_group)


def _set_foreground(context: CallContext, terminal: Terminal, address: int) -> int:
    group = signed(context.memory.read_u32(address))
    groups.set_foreground(context.kernel, context.thread, terminal, group)
    return 0


def _get_session(context: CallContext, terminal: Terminal, address: int) -> int:
    return _tell_session(context, terminal, address, terminal.session)


def _tell_session(context: CallContext, terminal: Terminal, address: int, number: int) -> int:
    """Write a number that only members of the terminal's session may read."""
    if terminal.session != context.process.session:
        raise KernelError(Errno.ENOTTY)
    context.memory.write_u32(address, number)
    return 0


def _take(context: CallContext, terminal: Terminal, argument: int) -> int:
    groups.take_terminal(context.process, terminal)
    return 0


def _give_up(context: CallContext, terminal: Terminal, argument: int) -> int:
    if context.process.terminal is not terminal:
        raise KernelError(Errno.ENOTTY)
    groups.leave_terminal(context.kernel, context.process)
    return 0


def _flush(context: CallContext, terminal: Terminal, which: int) -> int:
    if _flushes_input(which):
        terminal.discipline.flush_input()
        terminal.feed()
    return 0


def _flush_by_master(context: CallContext, terminal: Terminal, which: int) -> int:
    """The master's input is the output of the programs."""
    if _flushes_input(which):
        terminal.output.clear()
        terminal.changed.wake()
    return 0


def _flushes_input(which: int) -> bool:
    """Pseudo-terminal output is never flushed: it becomes the other side's input at once."""
    if which not in (_TCIFLUSH, _TCOFLUSH, _TCIOFLUSH):
        raise KernelError(Errno.EINVAL)
    return which != _TCOFLUSH


def _output_waiting(context: CallContext, terminal: Terminal, address: int) -> int:
    """Unsent output: always 0 (see `_flushes_input`)."""
    context.memory.write_u32(address, 0)
    return 0


def _flow(context: CallContext, terminal: Terminal, action: int) -> int:
    """tcflow: suspend and resume output; input is never suspended."""
    if action > 3:
        raise KernelError(Errno.EINVAL)
    if action in (0, 1):
        terminal.discipline.output_stopped = action == 0
        terminal.changed.wake()
    return 0


def _accept(context: CallContext, terminal: Terminal, argument: int) -> int:
    """tcdrain and tcsendbreak: nothing to do on a pseudo-terminal."""
    return 0


def _number(context: CallContext, terminal: Terminal, address: int) -> int:
    context.memory.write_u32(address, terminal.index)
    return 0


_BOTH: Final[dict[int, _Request]] = {
    _TCGETS: _get_settings,
    _TCSETS: _set_settings,
    _TCSETSW: _set_settings,
    _TCSETSF: _set_settings_and_flush,
    _TIOCGWINSZ: _get_size,
    _TIOCSWINSZ: _set_size,
    _TIOCOUTQ: _output_waiting,
    _TCSBRK: _accept,
    _TCSBRKP: _accept,
    _TCXONC: _flow,
}
_TERMINAL: Final[dict[int, _Request]] = {
    _TCFLSH: _flush,
    _TIOCGPGRP: _get_foreground,
    _TIOCSPGRP: _set_foreground,
    _TIOCGSID: _get_session,
    _TIOCSCTTY: _take,
    _TIOCNOTTY: _give_up,
}
_MASTER: Final[dict[int, _Request]] = {
    _TCFLSH: _flush_by_master,
    _TIOCGPTN: _number,
    _TIOCSPTLCK: _accept,
}
