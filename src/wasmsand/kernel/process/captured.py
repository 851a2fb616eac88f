"""A process without its memory, as a value, and its revival in another kernel.

Owns `CapturedProcess`, `capture` and `revive`. Rules: a captured process is immutable and refers to
no kernel. What a process shares with others cannot be captured, except its files and its streams to
the host, which the other host side provides again. Files are captured by inode number, because a
copy of a file system has the same ones; files of a mount by their path, because a mount is made
again. They are opened again with the rights of the process. `CannotCapture` says what is in the
way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.command_files import CommandInput
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.device import SimpleDevice
from wasmsand.kernel.files.output_channel import ChannelOutput
from wasmsand.kernel.files.pipe import PipeEnd, make_pipe
from wasmsand.kernel.files.regular import DirectoryFile, NodeFile, RegularFile
from wasmsand.kernel.files.table import FdTable
from wasmsand.kernel.flags import (
    O_ACCMODE,
    O_DIRECTORY,
    O_NOFOLLOW,
    O_PATH,
    O_RDONLY,
    S_IFIFO,
)
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.life import exit_process
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.rlimits import ResourceLimits
from wasmsand.kernel.process.signals import SignalAction, SignalInfo, SignalState
from wasmsand.kernel.vfs import Node, Stat, TreeFs
from wasmsand.kernel.vfs.model import is_directory

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel

_PIPE_MODE: Final = S_IFIFO | 0o600


class CannotCapture(Exception):
    """The process has something that cannot be taken along; the message names it."""


@dataclass(frozen=True, slots=True)
class CapturedInode:
    """An open file, directory or device."""

    kind: str
    """"file", "directory", "path" or "device"."""
    ino: int
    flags: int
    position: int = 0
    number: int = 0
    """The number of a device."""
    path: bytes | None = None
    """For a file of a mount; it has no `ino` then."""


@dataclass(frozen=True, slots=True)
class CapturedStream:
    """A stream to or from the host."""

    host_fd: int
    """The descriptor by which the host knows it."""
    is_input: bool
    waiting: bytes = b""
    """What the host has written and the process has not read."""
    flags: int = 0


@dataclass(frozen=True, slots=True)
class CapturedText:
    """Input that the host gave at the start: what is left of it."""

    left: bytes


@dataclass(frozen=True, slots=True)
class CapturedPipeEnd:
    """One end of a pipe between two descriptors of the process itself."""

    pipe: int
    flags: int
    waiting: bytes = b""


CapturedFile = CapturedInode | CapturedStream | CapturedText | CapturedPipeEnd


@dataclass(frozen=True, slots=True)
class CapturedProcess:
    """Everything that the kernel keeps for a process."""

    pid: int
    argv: tuple[bytes, ...]
    environ: tuple[bytes, ...]
    executable: bytes
    name: bytes
    cwd: int
    """An inode number."""
    umask: int
    nice: int
    identity: Identity
    limits: ResourceLimits
    actions: Mapping[int, SignalAction]
    mask: int
    pending: tuple[SignalInfo, ...]
    files: tuple[CapturedFile, ...]
    descriptors: tuple[tuple[int, int, bool], ...]
    """Each descriptor: its number, the index of its file, and whether exec closes it."""
    ended_child: int | None = None
    """A child that has ended, and for which the process will wait."""
    cwd_path: bytes | None = None
    """For a working directory in a mount; `cwd` is 0 then."""

    @property
    def held_inodes(self) -> frozenset[int]:
        """The inodes that stay while the process exists, even without a name."""
        files = [file for file in self.files if isinstance(file, CapturedInode)]
        held = {file.ino for file in files if file.path is None}
        return frozenset(held if self.cwd_path is not None else held | {self.cwd})

    @property
    def mounted_paths(self) -> list[bytes]:
        """What the process uses of mounts."""
        paths = [self.cwd_path, *[f.path for f in self.files if isinstance(f, CapturedInode)]]
        return [path for path in paths if path is not None]


def capture(kernel: Kernel, process: Process, inputs: Mapping[int, PipeEnd]) -> CapturedProcess:
    """A process that waits, as a value. `inputs` are the host's ends of its input streams, by the
    host's descriptors. Raises `CannotCapture`."""
    if len(process.threads) != 1:
        raise CannotCapture(f"it has {len(process.threads)} threads")
    if process.terminal is not None:
        raise CannotCapture("it has a terminal")
    hosts: dict[object, int] = {end.pipe: fd for fd, end in inputs.items()}
    capturer = _Capturer(kernel, hosts)
    descriptors = tuple(
        (fd, capturer.index_of(fd, process.fds.get(fd)), process.fds.close_on_exec(fd))
        for fd in process.fds
    )
    thread = process.first_thread
    signals = thread.signals
    cwd, cwd_path = _place_of(kernel, process.cwd, "its working directory")
    return CapturedProcess(
        pid=process.pid,
        argv=process.argv,
        environ=process.environ,
        executable=process.executable,
        name=process.name,
        cwd=cwd,
        cwd_path=cwd_path,
        umask=process.umask,
        nice=process.nice,
        identity=process.identity,
        limits=process.rlimits.copy(),
        actions=signals.actions(),
        mask=signals.mask if signals.saved_mask is None else signals.saved_mask,
        pending=tuple(process.signals.pending_info.values()),
        files=tuple(capturer.files),
        descriptors=descriptors,
    )


def _place_of(kernel: Kernel, node: Node | None, what: str) -> tuple[int, bytes | None]:
    """The inode number of a file, or 0 and its path if it is in a mount."""
    if node is not None and node.fs is kernel.root:
        return node.ino, None
    if node is None or not isinstance(node.fs, TreeFs):
        raise CannotCapture(f"{what} is in another file system")
    try:
        return 0, kernel.namespace.path_of(node)
    except KernelError:
        raise CannotCapture(f"{what} is a file of a mount, and was removed") from None


class _Capturer:
    """Describes files, each once however many descriptors it has."""

    def __init__(self, kernel: Kernel, hosts: Mapping[object, int]) -> None:
        self._kernel = kernel
        self._hosts = hosts
        self._indexes: dict[OpenFile, int] = {}
        self._pipes: dict[object, int] = {}
        self.files: list[CapturedFile] = []

    def index_of(self, fd: int, file: OpenFile) -> int:
        if file not in self._indexes:
            self._indexes[file] = len(self.files)
            self.files.append(self._captured(fd, file))
        return self._indexes[file]

    def _captured(self, fd: int, file: OpenFile) -> CapturedFile:
        what = f"descriptor {fd}"
        if isinstance(file, NodeFile):
            kinds = {RegularFile: "file", DirectoryFile: "directory"}
            kind = kinds.get(type(file), "path")
            ino, path = _place_of(self._kernel, file.node, what)
            return CapturedInode(kind, ino, file.flags, file.position, path=path)
        if isinstance(file, SimpleDevice):
            ino, path = _place_of(self._kernel, file.node, what)
            if path is not None:
                raise CannotCapture(f"{what} is a device in a mount")
            return CapturedInode("device", ino, file.flags, number=file.number)
        if isinstance(file, ChannelOutput):
            return CapturedStream(file.host_fd, False, flags=file.flags)
        if isinstance(file, CommandInput):
            return CapturedText(file.left)
        if isinstance(file, PipeEnd) and file.node is None:
            return self._pipe_end(what, file)
        raise CannotCapture(f"{what} is a {type(file).__name__}, which stays with this sandbox")

    def _pipe_end(self, what: str, end: PipeEnd) -> CapturedFile:
        pipe = end.pipe
        reads = end.flags & O_ACCMODE == O_RDONLY
        host = self._hosts.get(pipe)
        if host is not None and reads:
            return CapturedStream(host, True, pipe.content(), end.flags)
        if pipe.readers + pipe.writers > 2:
            raise CannotCapture(f"{what} is a pipe that other processes use")
        number = self._pipes.setdefault(pipe, len(self._pipes))
        return CapturedPipeEnd(number, end.flags, pipe.content() if reads else b"")


def revive(
    kernel: Kernel, captured: CapturedProcess, stream: Callable[[CapturedStream], OpenFile]
) -> Process:
    """The same process in another kernel, whose root file system is a copy. `stream` makes its
    streams to the host. EEXIST if its number is taken; the errors of a new process."""
    table = kernel.processes
    table.require_room()
    numbers = {captured.pid, captured.ended_child} - {None}
    if any(number is not None and table.find(number) is not None for number in numbers):
        raise KernelError(Errno.EEXIST, f"pid {captured.pid} is in use")
    signals = SignalState()
    signals.restore(captured.actions, captured.mask, captured.pending)
    cwd = Node(kernel.root, captured.cwd)
    if captured.cwd_path is not None:
        cwd = _find_mounted(kernel, captured.identity, captured.cwd_path, O_DIRECTORY)
    process = Process(
        captured.pid,
        kernel.init,
        fds=FdTable(kernel.limits.max_open_files, kernel.ledger),
        cwd=cwd,
        identity=captured.identity,
        rlimits=captured.limits.copy(),
        start_ns=kernel.clock.monotonic(),
        signals=signals,
    )
    kernel.namespace.retain(cwd)
    process.umask, process.nice = captured.umask, captured.nice
    process.argv, process.environ = captured.argv, captured.environ
    process.executable = captured.executable
    process.name = process.first_thread.name = captured.name
    process.has_execed = True
    kernel.init.children[process.pid] = process
    table.add_again(process)
    try:
        _open_files(kernel, process, captured, stream)
        if captured.ended_child is not None:
            _end_child(kernel, process, captured.ended_child)
    except BaseException:
        exit_process(kernel, process, 9)
        raise
    return process


def _open_files(
    kernel: Kernel,
    process: Process,
    captured: CapturedProcess,
    stream: Callable[[CapturedStream], OpenFile],
) -> None:
    pipes: dict[int, tuple[PipeEnd, PipeEnd]] = {}
    used: set[PipeEnd] = set()
    files: dict[int, OpenFile] = {}

    def stat() -> Stat:
        return kernel.anonymous.new(_PIPE_MODE, captured.identity.uid, captured.identity.gid)

    def opened(file: CapturedFile) -> OpenFile:
        if isinstance(file, CapturedStream):
            return stream(file)
        if isinstance(file, CapturedText):
            return CommandInput(file.left, stat)
        if isinstance(file, CapturedPipeEnd):
            if file.pipe not in pipes:
                pipes[file.pipe] = make_pipe(kernel.pipes, 0, stat())
            end = pipes[file.pipe][0 if file.flags & O_ACCMODE == O_RDONLY else 1]
            end.flags = file.flags
            if file.waiting:
                end.pipe.push(file.waiting)
            used.add(end)
            return end
        return _open_inode(kernel, captured.identity, file)

    try:
        for fd, index, close_on_exec in captured.descriptors:
            if index not in files:
                files[index] = opened(captured.files[index])
            process.fds.replace(fd, files[index], close_on_exec=close_on_exec)
    finally:
        for ends in pipes.values():
            for end in ends:
                if end not in used:
                    end.dispose()


def _open_inode(kernel: Kernel, identity: Identity, file: CapturedInode) -> OpenFile:
    namespace, node = kernel.namespace, Node(kernel.root, file.ino)
    if file.path is not None:
        node = _find_mounted(kernel, identity, file.path, file.flags)
        is_one = is_directory(node.fs.attributes(node.ino).mode)
        if file.kind != "path" and is_one != (file.kind == "directory"):
            raise KernelError(Errno.ENOENT, f"{_shown(file.path)} is no longer a {file.kind}")
    if file.kind == "device":
        return SimpleDevice(file.number, file.flags, namespace, node)
    kinds = {"file": RegularFile, "directory": DirectoryFile, "path": NodeFile}
    opened = kinds[file.kind](file.flags, namespace, node, identity.credentials())
    opened.position = file.position
    return opened


def _find_mounted(kernel: Kernel, identity: Identity, path: bytes, flags: int) -> Node:
    """A file of a mount, if the process may open it. ENOENT if nothing is mounted there. May ask
    the host, without the lock."""
    namespace = kernel.namespace
    flags &= O_ACCMODE | O_PATH | O_DIRECTORY
    node = namespace.open_node(identity.credentials(), namespace.root, path, flags | O_NOFOLLOW)
    if node.fs is kernel.root or not isinstance(node.fs, TreeFs):
        raise KernelError(Errno.ENOENT, f"{_shown(path)} is not in a mount")
    return node


def _shown(path: bytes) -> str:
    return path[:200].decode("utf-8", "replace")


def _end_child(kernel: Kernel, parent: Process, pid: int) -> None:
    """Make the child that has ended, as a zombie."""
    child = Process(
        pid,
        parent,
        fds=FdTable(0, kernel.ledger),
        cwd=parent.cwd,
        identity=parent.identity,
        rlimits=parent.rlimits.copy(),
        start_ns=kernel.clock.monotonic(),
    )
    kernel.namespace.retain(parent.cwd)
    child.group, child.session, child.job = parent.group, parent.session, parent.job
    parent.children[pid] = child
    kernel.processes.add_again(child)
    exit_process(kernel, child, 0)
