"""Disk images: how a sandbox's files differ from the image, as a tar archive.

Owns the format of disk images: POSIX (pax) tar, whose global header says the version, with one
member per change in the order of `changes`; a member with the record `removed` stands for what
is gone, and one with `end` is the last (records of our own: see `tar_format`). Devices and
sockets are left out, and what lies deeper than a path can be long.

Rules: what is read is not trusted: names are plain, sizes are charged as they are written, and
whatever is wrong is `DiskImageRejected`; a file is never held in memory as a whole; the lock is
held for bounded work at a time.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFMT, S_IFREG
from wasmsand.kernel.limits import HOST_ENTRIES_PER_HOLD, IO_CHUNK, PATH_MAX
from wasmsand.kernel.vfs import (
    ROOT,
    Change,
    FileContent,
    FileInode,
    Namespace,
    Node,
    SymlinkInode,
    changes,
)
from wasmsand.machine import trees
from wasmsand.machine.archives import fill, most_extents
from wasmsand.machine.at_rest import frozen_tree
from wasmsand.machine.host_access import HostAccess, find
from wasmsand.machine.tar_format import END, ArchiveRejected, Kind, Member, padding
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_writer import global_header, header, stored_size

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_FORMAT: Final = b"disk"
_VERSION: Final = b"1"
_REMOVED: Final = b"removed"
_END: Final = b"end"
"""An archive that was cut off between two members looks complete to `tar`."""


class DiskImageRejected(Exception):
    """An archive that is no disk image, or does not fit the sandbox."""


def write_disk_image(machine: Machine, stream: IO[bytes]) -> None:
    """Write how the files of a sandbox differ from those of a fresh one."""
    tree = frozen_tree(machine)
    stream.write(global_header({_FORMAT: _VERSION}))
    for change in changes(tree):
        _write_change(stream, change)
    stream.write(header(Member(b".", mode=0o644, own={_END: b"1"})))
    stream.write(END)


def _write_change(stream: IO[bytes], change: Change) -> None:
    inode = change.inode
    if inode is None:
        stream.write(header(Member(change.path, own={_REMOVED: b"1"})))
        return
    kind, target, size, extents = Kind.FILE, b"", 0, None
    type_bits = inode.mode & S_IFMT
    if change.same_as is not None:
        kind, target = Kind.LINK, change.same_as
    elif type_bits == S_IFDIR:
        kind = Kind.DIRECTORY
    elif type_bits == S_IFIFO:
        kind = Kind.FIFO
    elif isinstance(inode, SymlinkInode):
        kind, target = Kind.SYMLINK, inode.target
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
    )
    stream.write(header(member))
    if kind is Kind.FILE:
        assert isinstance(inode, FileInode)
        _write_content(stream, member, inode.content)


def _write_content(stream: IO[bytes], member: Member, content: FileContent) -> None:
    for offset, length in [(0, member.size)] if member.extents is None else member.extents:
        for start in range(offset, offset + length, IO_CHUNK):
            stream.write(content.read(start, min(IO_CHUNK, offset + length - start)))
    stream.write(padding(stored_size(member)))


def read_disk_image(machine: Machine, stream: IO[bytes]) -> None:
    """Make the changes that `write_disk_image` has written to the files of a fresh sandbox."""
    try:
        reader = TarReader(stream, most_extents(machine.kernel.limits))
        loading = _Loading(machine, reader)
        for member in reader:
            if reader.own.get(_FORMAT) != _VERSION:
                raise DiskImageRejected("not a disk image of this version")
            if _END in member.own:
                loading.finish()
                return
            loading.apply(member)
        raise DiskImageRejected("the disk image is cut short")
    except ArchiveRejected as error:
        raise DiskImageRejected(f"not a disk image: {error.detail}") from None
    except KernelError as error:
        raise DiskImageRejected(str(error)) from None


class _Loading:
    """Changes that are being done again."""

    def __init__(self, machine: Machine, reader: TarReader) -> None:
        self._access = HostAccess(machine)
        self._reader = reader
        self._directory_times: list[tuple[Node, int]] = []

    def apply(self, member: Member) -> None:
        path = _plain(member.name)
        kind = member.kind
        if _REMOVED in member.own or kind is not Kind.DIRECTORY:
            self._remove(path)
            if _REMOVED in member.own:
                return
        with self._access as namespace:
            node = _make(namespace, member, path)
        if node is None:
            return
        if kind is Kind.FILE:
            fill(self._access, node, member, self._reader)
        with self._access as namespace:
            namespace.chown(ROOT, node, member.uid, member.gid)
            if kind is not Kind.SYMLINK:
                namespace.chmod(ROOT, node, member.mode)
            namespace.utimens(ROOT, node, None, member.mtime_ns)
        if kind is Kind.DIRECTORY:
            self._directory_times.append((node, member.mtime_ns))

    def finish(self) -> None:
        """Entries that were made later have changed the times of their directories."""
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
        raise DiskImageRejected(f"{text!r} is no plain relative path")
    return b"/" + name


def _make(namespace: Namespace, member: Member, path: bytes) -> Node | None:
    """What a member is, empty; None if it has its attributes already."""
    root = namespace.root
    match member.kind:
        case Kind.DIRECTORY:
            node = find(namespace, root, path)
            if node is None:
                return namespace.mkdir(ROOT, root, path, 0o700)
            if namespace.stat(node).mode & S_IFMT != S_IFDIR:
                raise KernelError(Errno.ENOTDIR, path.decode("utf-8", "replace"))
            return node
        case Kind.LINK:
            target = namespace.resolve(ROOT, root, _plain(member.target), follow=False)
            namespace.link(ROOT, target, root, path)
            return None
        case Kind.SYMLINK:
            return namespace.symlink(ROOT, member.target, root, path)
        case Kind.FIFO:
            return namespace.mknod(ROOT, root, path, S_IFIFO | 0o600)
        case Kind.FILE:
            return namespace.mknod(ROOT, root, path, S_IFREG | 0o600)
    raise DiskImageRejected(f"{member.text()!r} is of an unknown type")
