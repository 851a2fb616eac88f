"""Disk images: the differences between a sandbox's files and the image, as a tar archive.

Owns the format of disk images: a POSIX (pax) tar archive whose global header states the version,
with one member per change in the order of `changes`. A member with the record `removed` stands for
a removed path; one with the record `held` for an open file without a name; a member with the record
`end` comes last (see `tar_format` for our own records).
Devices, sockets, and files whose path would be too long are left out.

Rules: disk images are not trusted. Names must be plain relative paths, content is charged as it is
written, and every defect raises `DiskImageRejected`. A file is never held in memory as a whole.
Each hold of the lock does bounded work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFMT, S_IFREG
from wasmsand.kernel.limits import HOST_ENTRIES_PER_HOLD, IO_CHUNK, NAME_MAX, PATH_MAX
from wasmsand.kernel.vfs import (
    ROOT,
    Change,
    FileContent,
    FileInode,
    FrozenTree,
    Namespace,
    Node,
    SymlinkInode,
    changes,
    inode_in,
)
from wasmsand.kernel.vfs.chunks import CHUNK_SIZE
from wasmsand.machine import trees
from wasmsand.machine.archives import fill, most_extents
from wasmsand.machine.at_rest import frozen_tree
from wasmsand.machine.host_access import HostAccess, find
from wasmsand.machine.tar_format import END, ArchiveRejected, Member, MemberKind, padding
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_source import Source
from wasmsand.machine.tar_writer import global_header, header, stored_size

if TYPE_CHECKING:
    from wasmsand.machine.host_access import HostedMachine

_FORMAT: Final = b"disk"
_VERSION: Final = b"1"
_REMOVED: Final = b"removed"
_HELD: Final = b"held"
_HELD_PATH: Final = b"/.wasmsand-held"
_NOTHING: Final[Mapping[int, int]] = {}
_NO_RECORDS: Final[Mapping[bytes, bytes]] = {}
_END: Final = b"end"
"""Marks the end: to `tar`, an archive cut off between two members looks complete."""


class DiskImageRejected(Exception):
    """The data is not a disk image, or does not fit into the sandbox."""

    def __init__(self, message: str, *, is_full: bool = False) -> None:
        super().__init__(message)
        self.is_full = is_full
        """Whether the sandbox's limits are too low for it."""


class Sink(Protocol):
    """Where a disk image is written to."""

    def write(self, data: bytes, /) -> object:
        """Write all of `data`."""


def write_disk_image(machine: HostedMachine, stream: IO[bytes]) -> None:
    """Write the differences between a sandbox's files and those of a new one."""
    write_tree(frozen_tree(machine), stream)


def write_tree(tree: FrozenTree, stream: Sink, held: Mapping[int, int] = _NOTHING) -> None:
    """Write the differences between a tree and its image. `held` are inodes without a name that
    are written too, each with a number."""
    stream.write(global_header({_FORMAT: _VERSION}))
    for change in changes(tree):
        _write_change(stream, change)
    for ino, number in held.items():
        _write_change(stream, Change(b"held", inode_in(tree, ino)), {_HELD: b"%d" % number})
    stream.write(header(Member(b".", mode=0o644, own={_END: b"1"})))
    stream.write(END)


def _write_change(stream: Sink, change: Change, own: Mapping[bytes, bytes] = _NO_RECORDS) -> None:
    inode = change.inode
    if inode is None:
        stream.write(header(Member(change.path, own={_REMOVED: b"1"})))
        return
    kind, target, size, extents = MemberKind.FILE, b"", 0, None
    type_bits = inode.mode & S_IFMT
    if change.same_as is not None:
        kind, target = MemberKind.LINK, change.same_as
    elif type_bits == S_IFDIR:
        kind = MemberKind.DIRECTORY
    elif type_bits == S_IFIFO:
        kind = MemberKind.FIFO
    elif isinstance(inode, SymlinkInode):
        kind, target = MemberKind.SYMLINK, inode.target
    elif isinstance(inode, FileInode):
        size = inode.content.size
        extents = list(inode.content.extents())
        if extents == ([(0, size)] if size else []):
            extents = None
    else:
        return
    member = Member(
        name=change.path,
        kind=kind,
        mode=inode.mode & 0o7777,
        uid=inode.uid,
        gid=inode.gid,
        size=size,
        mtime_ns=inode.mtime,
        target=target,
        extents=extents,
        own=own,
    )
    stream.write(header(member))
    if kind is MemberKind.FILE:
        assert isinstance(inode, FileInode)
        _write_content(stream, member, inode.content)


def _write_content(stream: Sink, member: Member, content: FileContent) -> None:
    for offset, length in [(0, member.size)] if member.extents is None else member.extents:
        for start in range(offset, offset + length, IO_CHUNK):
            stream.write(content.read(start, min(IO_CHUNK, offset + length - start)))
    stream.write(padding(stored_size(member)))


def read_disk_image(machine: HostedMachine, stream: Source) -> None:
    """Apply the changes that `write_disk_image` wrote to a new sandbox's files."""
    read_tree(machine, stream)


def read_tree(machine: HostedMachine, stream: Source) -> dict[int, Node]:
    """Apply the changes that `write_tree` wrote to a new sandbox's files. Returns the files without
    a name by their numbers, retained."""
    try:
        reader = TarReader(stream, most_extents(machine.kernel.limits))
        loading = _Loading(machine, reader)
        for member in reader:
            if reader.own.get(_FORMAT) != _VERSION:
                raise DiskImageRejected("not a disk image of this version")
            if _END in member.own:
                loading.finish()
                return loading.held
            loading.apply(member)
        raise DiskImageRejected("the disk image is cut short")
    except ArchiveRejected as error:
        raise DiskImageRejected(f"not a disk image: {error.detail}") from None
    except KernelError as error:
        raise DiskImageRejected(str(error), is_full=error.errno is Errno.ENOSPC) from None


class _Loading:
    """Applies the changes of one disk image."""

    def __init__(self, machine: HostedMachine, reader: TarReader) -> None:
        self._access = HostAccess(machine)
        self._reader = reader
        self._root = machine.kernel.root
        self._known: tuple[bytes, int] | None = None
        """The directory of the last file, and its inode number, while they are certain."""
        self._directory_times: list[tuple[Node, int]] = []
        self.held: dict[int, Node] = {}

    def apply(self, member: Member) -> None:
        kind = member.kind
        if _HELD in member.own:
            self._hold(member)
            return
        path = _plain(member.name)
        if kind is MemberKind.FILE and _REMOVED not in member.own and self._add(path, member):
            return
        self._known = None
        if _REMOVED in member.own or kind is not MemberKind.DIRECTORY:
            self._remove(path)
            if _REMOVED in member.own:
                return
        with self._access as namespace:
            node = _make(namespace, member, path)
        if node is None:
            return
        self._complete(node, member)
        if kind is MemberKind.DIRECTORY:
            self._directory_times.append((node, member.mtime_ns))

    def _add(self, path: bytes, member: Member) -> bool:
        """Create a small file in one step, as most files are. False if its name is taken, or if
        anything else about it is unusual."""
        head, _, name = path.rpartition(b"/")
        if member.extents is not None or member.size > CHUNK_SIZE or len(name) > NAME_MAX:
            return False
        root = self._root
        with self._access as namespace:
            if self._known is None or self._known[0] != head:
                node = find(namespace, namespace.root, head or b"/")
                if node is None or node.fs is not root:
                    return False
                if namespace.stat(node).mode & S_IFMT != S_IFDIR:
                    return False
                self._known = head, node.ino
            parent = self._known[1]
            if root.lookup(parent, name) is not None:
                return False
            data = b"".join([data for _, data in self._reader.pieces()])
            mode, uid, gid = member.mode, member.uid, member.gid
            root.add_file(parent, name, data, mode, uid, gid, member.mtime_ns)
        return True

    def _complete(self, node: Node, member: Member) -> None:
        kind = member.kind
        if kind is MemberKind.FILE:
            fill(self._access, node, member, self._reader)
        with self._access as namespace:
            namespace.chown(ROOT, node, member.uid, member.gid)
            if kind is not MemberKind.SYMLINK:
                namespace.chmod(ROOT, node, member.mode)
            namespace.utimens(ROOT, node, None, member.mtime_ns)

    def _hold(self, member: Member) -> None:
        """Create a file or directory without a name."""
        text = member.own[_HELD]
        number = int(text) if text.isdigit() and len(text) < 8 else -1
        if number in self.held or number < 0:
            raise DiskImageRejected("a file without a name has no number of its own")
        with self._access as namespace:
            if member.kind is MemberKind.DIRECTORY:
                node = namespace.mkdir(ROOT, namespace.root, _HELD_PATH, 0o700)
                namespace.retain(node)
                namespace.rmdir(ROOT, namespace.root, _HELD_PATH)
            elif member.kind is MemberKind.FILE:
                node = namespace.make_unnamed(ROOT, namespace.root, 0o600)
            else:
                raise DiskImageRejected("neither a file nor a directory has no name")
        self.held[number] = node
        self._complete(node, member)

    def finish(self) -> None:
        """Set the times of directories again: creating their entries has changed them."""
        times = self._directory_times
        for start in range(0, len(times), HOST_ENTRIES_PER_HOLD):
            with self._access as namespace:
                for node, mtime in times[start : start + HOST_ENTRIES_PER_HOLD]:
                    try:
                        namespace.utimens(ROOT, node, None, mtime)
                    except KernelError as error:
                        if error.errno is not Errno.ENOENT:  # a later change may have removed it
                            raise

    def _remove(self, path: bytes) -> None:
        with self._access as namespace:
            node = find(namespace, namespace.root, path)
            if node is None:
                return
            if namespace.stat(node).mode & S_IFMT != S_IFDIR:
                namespace.unlink(ROOT, namespace.root, path)
                return
        trees.remove(self._access, path)


def _plain(name: bytes) -> bytes:
    if name == b".":
        return b"/"
    if len(name) >= PATH_MAX or {b"", b".", b".."} & set(name.split(b"/")):
        text = name[:80].decode("utf-8", "replace")
        raise DiskImageRejected(f"{text!r} is not a plain relative path")
    return b"/" + name


def _make(namespace: Namespace, member: Member, path: bytes) -> Node | None:
    """Create a member without its content; None if it needs no attributes (a hard link)."""
    root = namespace.root
    match member.kind:
        case MemberKind.DIRECTORY:
            node = find(namespace, root, path)
            if node is None:
                return namespace.mkdir(ROOT, root, path, 0o700)
            if namespace.stat(node).mode & S_IFMT != S_IFDIR:
                raise KernelError(Errno.ENOTDIR, path.decode("utf-8", "replace"))
            return node
        case MemberKind.LINK:
            target = namespace.resolve(ROOT, root, _plain(member.target), follow=False)
            namespace.link(ROOT, target, root, path)
            return None
        case MemberKind.SYMLINK:
            return namespace.symlink(ROOT, member.target, root, path)
        case MemberKind.FIFO:
            return namespace.mknod(ROOT, root, path, S_IFIFO | 0o600)
        case MemberKind.FILE:
            return namespace.mknod(ROOT, root, path, S_IFREG | 0o600)
    raise DiskImageRejected(f"{member.text()!r} has an unknown type")
