"""From a path to an open file description.

Owns `open_path`, which chooses the type of description for an inode. Rules: the namespace checks
permissions. Opening a FIFO waits for its other side. /dev/tty is the caller's terminal. Opening
/proc/PID/fd/N of an object without an inode opens that object again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.device import CONSOLE, PTMX, PTY_MAJOR, TTY, SimpleDevice
from wasmsand.kernel.files.pipe import Pipe, PipeEnd
from wasmsand.kernel.files.regular import DirectoryFile, NodeFile, RegularFile
from wasmsand.kernel.files.terminal import Terminal, TerminalFile, TerminalMaster
from wasmsand.kernel.flags import (
    O_ACCMODE,
    O_CREAT,
    O_CREATION,
    O_DIRECTORY,
    O_NOCTTY,
    O_NONBLOCK,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    O_TMPFILE_BIT,
    O_WRONLY,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFMT,
    S_IFREG,
)
from wasmsand.kernel.process.call_state import HeldByCall
from wasmsand.kernel.vfs import ROOT, Namespace, Node
from wasmsand.kernel.vfs.filesystem import Attributes
from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.vfs.inode import FileInode
from wasmsand.kernel.wait import WouldBlock

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel
    from wasmsand.kernel.process.process import Process
    from wasmsand.kernel.process.thread import Thread


def open_path(
    kernel: Kernel, thread: Thread, base: Node, path: bytes, flags: int, mode: int
) -> OpenFile:
    """open(2) without allocating the fd."""
    waiting = thread.call.progress
    if isinstance(waiting, FifoOpen):
        return _finish_fifo_open(thread, waiting)
    process = thread.process
    namespace = kernel.namespace
    credentials = process.identity.credentials()
    if flags & O_TMPFILE_BIT:
        return _open_unnamed(namespace, process, base, path, flags, mode)
    node = namespace.open_node(credentials, base, path, flags, mode, process.umask)
    kept = flags & ~O_CREATION
    if flags & O_PATH:
        return NodeFile(kept, namespace, node, credentials)
    fs, ino = node.fs, node.ino
    if fs.has_descriptors:
        reference = fs.fd_reference(ino)
        if reference is not None:
            return _reopen(kernel, process, *reference, kept)
    kind = fs.attributes(ino).mode & S_IFMT
    if kind == S_IFREG:
        if kernel.content_wanted is not None:
            _want_content(kernel.content_wanted, fs.attributes(ino))
        return RegularFile(kept, namespace, node, credentials)
    if kind == S_IFDIR:
        return DirectoryFile(kept, namespace, node, credentials)
    if kind == S_IFIFO:
        return _open_fifo(kernel, thread, node, kept)
    if kind == S_IFCHR:
        return _open_device(kernel, process, node, namespace.stat(node).rdev, flags)
    raise KernelError(Errno.ENXIO)  # block devices and sockets


def _want_content(wanted: Callable[[ImageData], None], attributes: Attributes) -> None:
    """Tell the host that the content of a file of the image is about to be read. If that makes the
    call wait, opening the file again has the same result: what O_CREAT has made, or O_TRUNC has
    cut, has no such content."""
    if isinstance(attributes, FileInode):
        image = attributes.content.image
        if image is not None and attributes.content.image_end and not image.is_loaded:
            wanted(image)


def _open_unnamed(
    namespace: Namespace, process: Process, base: Node, path: bytes, flags: int, mode: int
) -> OpenFile:
    if not flags & O_DIRECTORY or flags & O_CREAT or flags & O_ACCMODE == O_RDONLY:
        raise KernelError(Errno.EINVAL)
    credentials = process.identity.credentials()
    directory = namespace.resolve(credentials, base, path)
    node = namespace.make_unnamed(credentials, directory, mode, process.umask)
    kept = flags & ~(O_CREATION | O_TMPFILE_BIT | O_DIRECTORY)
    file = RegularFile(kept, namespace, node, credentials)
    namespace.release(node)  # the description retains it
    return file


def open_memory(kernel: Kernel) -> OpenFile:
    """A file without a directory entry (memfd_create)."""
    namespace = kernel.namespace
    node = namespace.make_unnamed(ROOT, namespace.root, 0o777)
    file = RegularFile(O_RDWR, namespace, node, ROOT)
    namespace.release(node)
    return file


def _open_device(kernel: Kernel, process: Process, node: Node, number: int, flags: int) -> OpenFile:
    kept = flags & ~O_CREATION
    if number in (TTY, CONSOLE):
        if process.terminal is None:
            raise KernelError(Errno.ENXIO, "no controlling terminal")
        if not process.terminal.master_open:
            raise KernelError(Errno.EIO, "terminal hung up")
        return TerminalFile(process.terminal, kept)
    if number == PTMX:
        terminal = kernel.new_terminal(process.identity.uid, process.identity.gid)
        return TerminalMaster(terminal, kept, node)
    if number >> 8 == PTY_MAJOR:
        return _open_terminal(kernel, process, number & 0xFF, flags)
    return SimpleDevice(number, kept, kernel.namespace, node)


def _open_terminal(kernel: Kernel, process: Process, index: int, flags: int) -> OpenFile:
    terminal = kernel.terminals.get(index)
    if terminal is None or not terminal.master_open:
        raise KernelError(Errno.EIO)
    file = TerminalFile(terminal, flags & ~O_CREATION)
    if (
        not flags & O_NOCTTY
        and process.session == process.pid
        and process.terminal is None
        and terminal.session == 0
    ):
        _adopt(process, terminal)
    return file


def _adopt(process: Process, terminal: Terminal) -> None:
    terminal.session = process.session
    terminal.foreground_group = process.group
    process.terminal = terminal


def _reopen(kernel: Kernel, process: Process, pid: int, fd: int, flags: int) -> OpenFile:
    """Open an object again that another fd refers to and that has no path."""
    original = referenced_file(kernel, pid, fd)
    if isinstance(original, PipeEnd):
        return PipeEnd(original.pipe, flags, stat=original.stat())
    if isinstance(original, TerminalFile):
        return TerminalFile(original.terminal, flags)
    # Streams to the host have one description each; share it, as dup does.
    wanted = flags & O_ACCMODE
    if wanted not in (original.flags & O_ACCMODE, O_RDWR) and wanted != O_RDONLY:
        raise KernelError(Errno.EACCES)
    return original


def referenced_file(kernel: Kernel, pid: int, fd: int) -> OpenFile:
    """The file behind /proc/PID/fd/N; ENOENT if the process or the fd is gone."""
    owner = kernel.processes.find(pid)
    try:
        if owner is not None:
            return owner.fds.get(fd)
    except KernelError:
        pass
    raise KernelError(Errno.ENOENT)


class FifoOpen(HeldByCall):
    """An open of a FIFO that waits for the other side."""

    __slots__ = ("end", "partners_seen")

    def __init__(self, end: PipeEnd, partners_seen: int) -> None:
        self.end = end
        self.partners_seen = partners_seen

    def abandon(self) -> None:
        """A signal or the process's end interrupted the wait."""
        self.end.dispose()


def _open_fifo(kernel: Kernel, thread: Thread, node: Node, flags: int) -> OpenFile:
    pipe = kernel.fifos.get(node) or Pipe(kernel.pipes)
    mode = flags & O_ACCMODE
    if mode == O_WRONLY and flags & O_NONBLOCK and pipe.readers == 0:
        raise KernelError(Errno.ENXIO)
    end = PipeEnd(pipe, flags, namespace=kernel.namespace, node=node)
    kernel.fifos[node] = pipe
    end.on_release = lambda: _forget_idle_fifo(kernel, node, pipe)
    try:
        end.enter(kernel.ledger)  # it may have no fd for a long time
    except KernelError:
        end.dispose()
        raise
    if mode == O_RDWR or flags & O_NONBLOCK:
        return end
    partners = pipe.writers if mode == O_RDONLY else pipe.readers
    if partners:
        return end
    seen = pipe.total_writers if mode == O_RDONLY else pipe.total_readers
    return _finish_fifo_open(thread, FifoOpen(end, seen))


def _finish_fifo_open(thread: Thread, waiting: FifoOpen) -> OpenFile:
    end = waiting.end
    pipe = end.pipe
    reading = end.flags & O_ACCMODE == O_RDONLY
    if (pipe.total_writers if reading else pipe.total_readers) != waiting.partners_seen:
        thread.call.progress = None  # the caller owns the end now
        return end
    thread.call.progress = waiting
    raise WouldBlock((pipe.opened,))


def _forget_idle_fifo(kernel: Kernel, node: Node, pipe: Pipe) -> None:
    if pipe.readers == 0 and pipe.writers == 0:
        kernel.fifos.pop(node, None)
