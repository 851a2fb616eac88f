"""How many bytes can be read without waiting.

Owns `readable_bytes`, which ioctl(FIONREAD) and WASI's poll_oneoff report.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.command_files import CommandInput
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.pipe import PipeEnd
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.files.terminal import TerminalFile, TerminalMaster
from wasmsand.kernel.sockets.base import Socket


def readable_bytes(file: OpenFile) -> int:
    """Bytes that a read would return now; ENOTTY if the file type has no such count."""
    if isinstance(file, PipeEnd):
        return file.pipe.size
    if isinstance(file, Socket):
        return file.readable_bytes()
    if isinstance(file, CommandInput):
        return file.remaining()
    if isinstance(file, TerminalFile):
        return file.terminal.discipline.available()
    if isinstance(file, TerminalMaster):
        return len(file.terminal.output)
    if isinstance(file, RegularFile):
        return max(0, file.stat().size - file.position)
    raise KernelError(Errno.ENOTTY)
