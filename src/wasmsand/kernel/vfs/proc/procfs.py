"""ProcFs: the tree of /proc.

Owns names, inode numbers, links and listings; the text of files is in `process` and `system`.
Rules: nothing is stored about processes: an inode number encodes pid, kind and argument (a
descriptor), and every call asks the source. A file's text is generated when it is read from the
start, so that a reader in small steps sees one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import O_ACCMODE, O_WRONLY, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import NAME_MAX, PROC_TEXTS_KEPT
from wasmsand.kernel.vfs.filesystem import Attributes, FileSystem, Node
from wasmsand.kernel.vfs.model import ROOT, DirEntry, Stat, StatFs
from wasmsand.kernel.vfs.nodes import NodeOperations
from wasmsand.kernel.vfs.proc import process, system
from wasmsand.kernel.vfs.proc.source import FdInfo, ProcessFacts, ProcSource

PROC_MAGIC: Final = 0x9FA0


class NodeKind(IntEnum):
    """What an inode number refers to; it also encodes a pid and an argument."""

    SYSTEM = 1
    """The argument is an index into the fixed entries; 0 is the root."""
    PROCESS = 2
    TASK = 3
    """The same entries as /proc/PID/task/TID; the pid is the tid. For both kinds the argument is
    an index into the entries of a process; 0 is the directory."""
    FD_LINK = 4
    FD_INFO = 5
    FD_OBJECT = 6
    """The target of a link in fd if the object is in no file system."""


class Place(NamedTuple):
    """A decoded inode number."""

    kind: NodeKind
    pid: int
    argument: int


class Fixed(NamedTuple):
    """An entry outside the process directories."""

    name: bytes
    parent: int
    mode: int
    render: Callable[[ProcSource], bytes] | None


class Owned(NamedTuple):
    """Mode and owner of an entry."""

    mode: int
    uid: int
    gid: int


ProcessText = Callable[[ProcessFacts], bytes]

_ENTRIES: tuple[tuple[bytes, int, ProcessText | None], ...] = (
    (b"", S_IFDIR | 0o555, None),
    (b"cgroup", S_IFREG | 0o444, process.cgroup),
    (b"children", S_IFREG | 0o444, process.children),
    (b"cmdline", S_IFREG | 0o444, process.cmdline),
    (b"comm", S_IFREG | 0o444, process.comm),
    (b"cwd", S_IFLNK | 0o777, None),
    (b"environ", S_IFREG | 0o400, process.environ),
    (b"exe", S_IFLNK | 0o777, None),
    (b"fd", S_IFDIR | 0o500, None),
    (b"fdinfo", S_IFDIR | 0o500, None),
    (b"limits", S_IFREG | 0o444, process.limits),
    (b"loginuid", S_IFREG | 0o444, process.loginuid),
    (b"maps", S_IFREG | 0o444, process.maps),
    (b"mountinfo", S_IFREG | 0o444, None),
    (b"mounts", S_IFREG | 0o444, None),
    (b"oom_score", S_IFREG | 0o444, process.oom_score),
    (b"oom_score_adj", S_IFREG | 0o444, process.oom_score_adj),
    (b"root", S_IFLNK | 0o777, None),
    (b"schedstat", S_IFREG | 0o444, process.schedstat),
    (b"stat", S_IFREG | 0o444, process.stat),
    (b"statm", S_IFREG | 0o444, process.statm),
    (b"status", S_IFREG | 0o444, process.status),
    (b"task", S_IFDIR | 0o555, None),
    (b"wchan", S_IFREG | 0o444, process.wchan),
)
"""The entries of a process directory, the directory itself first. ProcFs itself generates the
entries without a text function."""
_INDEX = {entry[0]: index for index, entry in enumerate(_ENTRIES)}
_FD, _FDINFO, _TASK = _INDEX[b"fd"], _INDEX[b"fdinfo"], _INDEX[b"task"]
_NOT_IN = {NodeKind.PROCESS: _INDEX[b"children"], NodeKind.TASK: _TASK}
"""The entry that each kind of directory lacks."""

_ROOT_LINKS: dict[bytes, Callable[[int, int], bytes]] = {
    b"self": lambda pid, tid: b"%d" % pid,
    b"thread-self": lambda pid, tid: b"%d/task/%d" % (pid, tid),
    b"mounts": lambda pid, tid: b"self/mounts",
}


def _fixed_entries() -> list[Fixed]:
    """The root, its links, and every path in `system.FILES` with its directories."""
    entries = [Fixed(b"", 0, S_IFDIR | 0o555, None)]
    entries += [Fixed(name, 0, S_IFLNK | 0o777, None) for name in _ROOT_LINKS]
    directories = {b"": 0}
    renders: dict[bytes, Callable[[ProcSource], bytes]] = {
        path: _render_system(render) for path, render in system.FILES.items()
    }
    renders[b"sys/kernel/random/uuid"] = lambda source: source.random_uuid() + b"\n"
    for path in sorted(renders):
        *above, name = path.split(b"/")
        for depth in range(len(above)):
            directory = b"/".join(above[: depth + 1])
            if directory not in directories:
                parent = directories[b"/".join(above[:depth])]
                directories[directory] = len(entries)
                entries.append(Fixed(above[depth], parent, S_IFDIR | 0o555, None))
        parent = directories[b"/".join(above)]
        entries.append(Fixed(name, parent, S_IFREG | 0o444, renders[path]))
    return entries


def _render_system(render: system.Render) -> Callable[[ProcSource], bytes]:
    return lambda source: render(source.system_info())


_FIXED = _fixed_entries()
_FIXED_NAMES = {(entry.parent, entry.name): i for i, entry in enumerate(_FIXED) if i}
_PID_COOKIE: Final = 1 << 20
"""Cookies of process directories start here, after those of the fixed entries."""


def _pack(kind: NodeKind, pid: int, argument: int) -> int:
    return pid << 40 | kind << 32 | argument


def _unpack(ino: int) -> Place:
    return Place(NodeKind(ino >> 32 & 0xFF), ino >> 40, ino & 0xFFFF_FFFF)


class ProcFs(FileSystem):
    """/proc for one sandbox."""

    type_name = "proc"
    has_descriptors = True

    def __init__(self, source: ProcSource, namespace: NodeOperations) -> None:
        self.root_ino = _pack(NodeKind.SYSTEM, 0, 0)
        self._source = source
        self._namespace = namespace
        self._texts: dict[int, bytes] = {}

    # Attributes.

    def attributes(self, ino: int) -> Attributes:
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.SYSTEM:
            return Owned(_FIXED[argument].mode, 0, 0)
        if kind is NodeKind.FD_OBJECT:
            stat = self._source.fd_stat(pid, argument)
            if stat is None:
                raise KernelError(Errno.ENOENT)
            return stat
        info = self._process(pid)
        if kind is NodeKind.FD_LINK:
            mode = S_IFLNK | _link_permissions(self._fd(pid, argument).flags)
        elif kind is NodeKind.FD_INFO:
            self._fd(pid, argument)
            mode = S_IFREG | 0o400
        else:
            mode = _ENTRIES[argument][1]
        return Owned(mode, info.uids[1], info.gids[1])

    def stat(self, ino: int) -> Stat:
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.FD_OBJECT:
            stat = self._source.fd_stat(pid, argument)
            if stat is None:
                raise KernelError(Errno.ENOENT)
            return stat
        owned = self.attributes(ino)
        when = self._source.system_info().boot_time_s * 1_000_000_000
        if kind is not NodeKind.SYSTEM:
            when += self._process(pid).start_time_ns
        nlink = 2 if owned.mode & S_IFMT == S_IFDIR else 1
        size = 64 if kind is NodeKind.FD_LINK else 0
        return Stat(
            dev=self.dev,
            ino=ino,
            mode=owned.mode,
            nlink=nlink,
            uid=owned.uid,
            gid=owned.gid,
            rdev=0,
            size=size,
            blksize=1024,
            blocks=0,
            atime_ns=when,
            mtime_ns=when,
            ctime_ns=when,
            btime_ns=when,
        )

    def statfs(self) -> StatFs:
        return StatFs(PROC_MAGIC, 4096, 0, 0, 0, 0, NAME_MAX, 0)

    def fd_reference(self, ino: int) -> tuple[int, int] | None:
        kind, pid, argument = _unpack(ino)
        return (pid, argument) if kind is NodeKind.FD_OBJECT else None

    def process_of(self, ino: int) -> int | None:
        """The pid, if this is a process directory."""
        kind, pid, argument = _unpack(ino)
        return pid if kind is NodeKind.PROCESS and not argument else None

    # Names.

    def lookup(self, parent: int, name: bytes) -> int | None:
        kind, pid, argument = _unpack(parent)
        if kind is NodeKind.SYSTEM:
            index = _FIXED_NAMES.get((argument, name))
            if index is not None:
                return _pack(NodeKind.SYSTEM, 0, index)
            number = _number(name) if argument == 0 else None
            if number is None or self._source.process_info(number) is None:
                return None
            return _pack(NodeKind.PROCESS, number, 0)
        if argument == 0:
            index = _INDEX.get(name)
            if not index or index == _NOT_IN[kind]:
                return None
            return _pack(kind, pid, index)
        number = _number(name)
        if number is None:
            return None
        if argument == _TASK:
            return _pack(NodeKind.TASK, number, 0) if number in self._threads(pid) else None
        if argument in (_FD, _FDINFO) and self._source.fd_info(pid, number) is not None:
            return _pack(NodeKind.FD_LINK if argument == _FD else NodeKind.FD_INFO, pid, number)
        return None

    def parent(self, ino: int) -> int:
        place = self.name_of(ino)
        return place[0] if place is not None else self.root_ino

    def name_of(self, ino: int) -> tuple[int, bytes] | None:
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.SYSTEM:
            entry = _FIXED[argument]
            return (_pack(NodeKind.SYSTEM, 0, entry.parent), entry.name) if argument else None
        if self._source.process_info(pid) is None or kind is NodeKind.FD_OBJECT:
            return None
        if kind in (NodeKind.FD_LINK, NodeKind.FD_INFO):
            directory = _FD if kind is NodeKind.FD_LINK else _FDINFO
            return _pack(NodeKind.PROCESS, pid, directory), b"%d" % argument
        if argument:
            return _pack(kind, pid, 0), _ENTRIES[argument][0]
        if kind is NodeKind.TASK:
            return _pack(NodeKind.PROCESS, self._process(pid).tgid or pid, _TASK), b"%d" % pid
        return self.root_ino, b"%d" % pid

    def readdir(self, ino: int, cookie: int, limit: int) -> list[DirEntry]:
        found = []
        if cookie < 1:
            found.append(DirEntry(b".", ino, S_IFDIR, 1))
        if cookie < 2:
            found.append(DirEntry(b"..", self.parent(ino), S_IFDIR, 2))
        found += [entry for entry in self._children(ino) if entry.cookie > cookie]
        return found[:limit]

    def _children(self, ino: int) -> Iterator[DirEntry]:
        """Entries in the order of their cookies, which depend only on the entry."""
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.SYSTEM:
            for index, entry in enumerate(_FIXED):
                if index and entry.parent == argument:
                    number = _pack(NodeKind.SYSTEM, 0, index)
                    yield DirEntry(entry.name, number, entry.mode & S_IFMT, 3 + index)
            if argument == 0:
                for other in self._source.pids():
                    number = _pack(NodeKind.PROCESS, other, 0)
                    yield DirEntry(b"%d" % other, number, S_IFDIR, _PID_COOKIE + other)
            return
        self._process(pid)
        if argument == 0:
            for index, (name, mode, _) in enumerate(_ENTRIES):
                if index and index != _NOT_IN[kind]:
                    yield DirEntry(name, _pack(kind, pid, index), mode & S_IFMT, 3 + index)
        elif argument == _TASK:
            for tid in self._threads(pid):
                yield DirEntry(b"%d" % tid, _pack(NodeKind.TASK, tid, 0), S_IFDIR, 3 + tid)
        else:
            link = argument == _FD
            child = NodeKind.FD_LINK if link else NodeKind.FD_INFO
            for fd in self._source.fds(pid):
                number = _pack(child, pid, fd)
                yield DirEntry(b"%d" % fd, number, S_IFLNK if link else S_IFREG, 3 + fd)

    def _threads(self, pid: int) -> Sequence[int]:
        return self._process(pid).threads or (pid,)

    # Links.

    def readlink(self, ino: int) -> bytes:
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.SYSTEM:
            caller = self._source.self_pid()
            name = _FIXED[argument].name
            if caller == 0 and name != b"mounts":
                raise KernelError(Errno.ENOENT, "the caller is not a process of the sandbox")
            return _ROOT_LINKS[name](caller, self._source.self_tid())
        if kind is NodeKind.FD_LINK:
            return self._fd(pid, argument).text
        info = self._process(pid)
        if _ENTRIES[argument][0] == b"exe" and info.exe_path:
            return info.exe_path
        try:
            return self._namespace.path_of(self._process_node(info, argument))
        except KernelError as error:
            if error.errno is not Errno.ENOENT or info.state == "Z":
                raise
            return b"/ (deleted)"

    def follow(self, ino: int) -> bytes | Node:
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.SYSTEM:
            return self.readlink(ino)
        if kind is NodeKind.FD_LINK:
            return self._fd(pid, argument).node or Node(
                self, _pack(NodeKind.FD_OBJECT, pid, argument)
            )
        return self._process_node(self._process(pid), argument)

    def _process_node(self, info: ProcessFacts, index: int) -> Node:
        name = _ENTRIES[index][0]
        root = info.root or self._namespace.root
        if name == b"exe" and info.exe_path:
            return self._namespace.resolve(ROOT, root, info.exe_path)
        node = {b"cwd": info.cwd, b"root": root}.get(name)
        if node is None or info.state == "Z":
            raise KernelError(Errno.ENOENT)
        return node

    # Text.

    def read(self, ino: int, offset: int, size: int) -> bytes:
        text = self._texts.get(ino) if offset else None
        if text is None:
            text = self._text(ino)
            self._texts.pop(ino, None)
            if len(self._texts) >= PROC_TEXTS_KEPT:
                del self._texts[next(iter(self._texts))]
            self._texts[ino] = text
        return text[offset : offset + size]

    def release(self, ino: int) -> None:
        self._texts.pop(ino, None)

    def _text(self, ino: int) -> bytes:
        kind, pid, argument = _unpack(ino)
        if kind is NodeKind.SYSTEM:
            render = _FIXED[argument].render
            if render is None:
                raise KernelError(Errno.EISDIR)
            return render(self._source)
        info = self._find(kind, pid)
        if info is None:
            raise KernelError(Errno.ESRCH)
        if kind is NodeKind.FD_INFO:
            return process.fdinfo(self._fd(pid, argument))
        name, mode, text = _ENTRIES[argument]
        if text is not None:
            return text(info)
        if mode & S_IFMT == S_IFDIR:
            raise KernelError(Errno.EISDIR)
        if name == b"mounts":
            return self._namespace.mounts_text()
        return self._namespace.mountinfo_text()

    def _find(self, kind: NodeKind, pid: int) -> ProcessFacts | None:
        source = self._source
        return source.thread_info(pid) if kind is NodeKind.TASK else source.process_info(pid)

    def _process(self, pid: int) -> ProcessFacts:
        info = self._source.process_info(pid)
        if info is None:
            raise KernelError(Errno.ENOENT)
        return info

    def _fd(self, pid: int, fd: int) -> FdInfo:
        info = self._source.fd_info(pid, fd)
        if info is None:
            raise KernelError(Errno.ENOENT)
        return info


def _number(name: bytes) -> int | None:
    """A decimal number as used in /proc: no sign, no leading zero, at most 9 digits."""
    if not name.isdigit() or len(name) > 9 or (name[0] == 0x30 and len(name) > 1):
        return None
    return int(name)


def _link_permissions(flags: int) -> int:
    """The permission bits of a descriptor's link show its access mode."""
    access = flags & O_ACCMODE
    return (0o500 if access != O_WRONLY else 0) | (0o300 if access else 0)
