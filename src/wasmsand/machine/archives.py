"""Exporting a sandbox's files as a tar archive, and importing one.

Rules: archives are produced and read in pieces, never as a whole; each hold of the lock does
bounded work (see `host_access`). An archive holds the content of a file once; its further names
are hard links. Imported archives are not trusted: nothing is written outside the named directory,
symbolic links are never followed, and the unpacked size is limited to what the sandbox can hold.
Imported files belong to the sandbox's user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import (
    ARCHIVE_HEADERS_PER_ENTRY,
    ARCHIVE_LINK_BYTES,
    HOST_ENTRIES_PER_HOLD,
    IO_CHUNK,
    MIB,
    Limits,
)
from wasmsand.kernel.vfs import ROOT, Namespace, Node
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.machine import trees
from wasmsand.machine.host_access import HostAccess, find
from wasmsand.machine.tar_format import END, SECOND, ArchiveRejected, Member, MemberKind, padding
from wasmsand.machine.tar_reader import Extents, TarReader
from wasmsand.machine.tar_source import Bounded, unpacked
from wasmsand.machine.tar_writer import header, stored_size

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_KINDS: Final = {
    S_IFREG: MemberKind.FILE,
    S_IFDIR: MemberKind.DIRECTORY,
    S_IFLNK: MemberKind.SYMLINK,
    S_IFIFO: MemberKind.FIFO,
}
_PIECE: Final = 65536
_LATEST_TIME: Final = 2**33 * SECOND
_HOLES_WORTH_A_MAP: Final = 1 * MIB


# Export.


def export_tar(machine: Machine, path: str) -> Iterator[bytes]:
    """A file, or everything below a directory, as pieces of a tar archive.

    Sockets, devices and mounted file systems are left out, and so are files that are removed
    while the archive is made.
    """
    access = HostAccess(machine)
    with access as namespace:
        top = namespace.resolve(ROOT, namespace.root, _bytes(path))
        stat = namespace.stat(top)
        if stat.mode & S_IFMT == S_IFDIR:
            found = trees.walk(access, top)
        else:
            name = namespace.path_of(top).rpartition(b"/")[2]
            found = iter((trees.Found(name, top, stat),))
    return _joined(_Packer(machine, access).pieces(found))


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small pieces into larger ones: most headers are only 512 bytes."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


class _Packer:
    """Makes one archive. It retains no node: the generator may be finalized on a thread that
    already holds the lock, so a node could not be released safely. It holds no content either: a
    slow reader of the archive would keep data alive that guests have long replaced."""

    def __init__(self, machine: Machine, access: HostAccess) -> None:
        self._machine = machine
        self._access = access
        self._holes = 0
        self._linked: dict[int, bytes] = {}
        """For each file with several names: the first name in the archive."""
        self._linked_bytes = 0

    def pieces(self, found: Iterator[trees.Found]) -> Iterator[bytes]:
        """The archive, piece by piece."""
        for entry in found:
            member = self._member(entry)
            if member is None:
                continue
            yield header(member)
            if member.kind is MemberKind.FILE:
                yield from self._content(entry.node, member)
        yield END

    def _member(self, entry: trees.Found) -> Member | None:
        node, stat = entry.node, entry.stat
        kind = _KINDS.get(stat.mode & S_IFMT)
        if kind is None:
            return None
        size, target, extents = 0, b"", None
        if kind is MemberKind.FILE and stat.nlink > 1:
            first = self._linked.get(node.ino)
            if first is not None:
                kind, target = MemberKind.LINK, first
            else:
                self._remember(node.ino, entry.path)
        try:
            if kind is MemberKind.SYMLINK:
                with self._access as namespace:
                    target = namespace.readlink(node)
            elif kind is MemberKind.FILE:
                size, extents = self._size_and_extents(entry)
        except KernelError as error:
            if error.errno is Errno.ENOENT:  # removed meanwhile
                return None
            raise
        return Member(
            name=entry.path,
            kind=kind,
            mode=stat.mode & 0o7777,
            uid=stat.uid,
            gid=stat.gid,
            size=size,
            mtime_ns=stat.mtime_ns // SECOND * SECOND,
            target=target,
            extents=extents,
        )

    def _remember(self, ino: int, path: bytes) -> None:
        self._linked_bytes += len(path)
        if self._linked_bytes > ARCHIVE_LINK_BYTES:
            raise KernelError(Errno.EFBIG, "too many long hard link names; export parts")
        self._linked[ino] = path

    def _size_and_extents(self, entry: trees.Found) -> tuple[int, Extents | None]:
        """A file's size, and its data extents if it has enough holes to store them as such."""
        with self._access as namespace:
            stat = namespace.stat(entry.node)
            holes = max(0, stat.size - stat.blocks * 512)
            self._holes += holes
            self._machine.files.require_few_holes(self._holes, _text(entry.path))
            content = namespace.share_content(entry.node) if holes >= _HOLES_WORTH_A_MAP else None
        return stat.size, None if content is None else list(content.extents())

    def _content(self, node: Node, member: Member) -> Iterator[bytes]:
        """The bytes of one file, padded to a whole block. A file that shrinks or is removed
        meanwhile is filled up with zeros, because its header already states its size."""
        extents = [(0, member.size)] if member.extents is None else member.extents
        left = iter(_steps(extents))
        offset, wanted = next(left, (0, 0))
        while wanted:
            pieces = []
            size = 0
            with self._access as namespace:
                for _ in range(HOST_ENTRIES_PER_HOLD):
                    piece = _read(namespace, node, offset, wanted)
                    pieces.append(piece + bytes(wanted - len(piece)))
                    size += wanted
                    offset, wanted = next(left, (0, 0))
                    if not wanted or size + wanted > IO_CHUNK:
                        break
            yield b"".join(pieces)
        yield padding(stored_size(member))


def _steps(extents: Extents) -> Iterator[tuple[int, int]]:
    """Split extents into parts of at most IO_CHUNK bytes."""
    for offset, length in extents:
        for start in range(offset, offset + length, IO_CHUNK):
            yield start, min(IO_CHUNK, offset + length - start)


def _read(namespace: Namespace, node: Node, offset: int, size: int) -> bytes:
    try:
        return namespace.read(node, offset, size)
    except KernelError as error:
        if error.errno is Errno.ENOENT:
            return b""
        raise


# Import.


def import_tar(machine: Machine, path: str, pieces: Iterable[bytes]) -> None:
    """Unpack a tar archive, plain or gzip-compressed, into a directory; create the directory.

    Raises `ArchiveRejected` if the data is not a tar archive or a member's name leads outside the
    directory. Members that were unpacked before the error stay.
    """
    limits = machine.kernel.limits
    machine.files.mkdir(path, parents=True)
    access = HostAccess(machine)
    with access as namespace:
        top = namespace.resolve(ROOT, namespace.root, _bytes(path))
        namespace.retain(top)
    try:
        most = limits.fs_limit_bytes + limits.max_inodes * ARCHIVE_HEADERS_PER_ENTRY + MIB
        reader = TarReader(Bounded(unpacked(pieces), most), most_extents(limits))
        unpacker = _Unpacker(machine, access, top, reader)
        for member in reader:
            unpacker.unpack(member)
    finally:
        with machine.lock:
            machine.kernel.namespace.release(top)


def most_extents(limits: Limits) -> int:
    """The most data extents that a file may have, whether this sandbox or another system made
    it."""
    return max(1 << 18, limits.fs_limit_bytes // BLOCK_SIZE + 1)


class _Unpacker:
    """Creates the members of one archive below one directory."""

    def __init__(self, machine: Machine, access: HostAccess, top: Node, reader: TarReader) -> None:
        self._machine = machine
        self._access = access
        self._top = top
        self._reader = reader

    def unpack(self, member: Member) -> None:
        """Create one member. Devices and unknown kinds are skipped."""
        parts = _parts(member.name)
        if not parts:
            return
        with self._access as namespace:
            node = self._make(namespace, member, parts)
            if node is None:
                return
            namespace.retain(node)
        try:
            if member.kind is MemberKind.FILE:
                fill(self._access, node, member, self._reader)
            with self._access as namespace:
                if member.kind is not MemberKind.SYMLINK:
                    namespace.chmod(ROOT, node, member.mode)
                modified = max(0, min(member.mtime_ns // SECOND * SECOND, _LATEST_TIME))
                namespace.utimens(ROOT, node, None, modified)
        finally:
            with self._machine.lock:
                self._machine.kernel.namespace.release(node)

    def _make(self, namespace: Namespace, member: Member, parts: list[bytes]) -> Node | None:
        """Create `member` without its content; None if nothing is left to do for it."""
        kind, name = member.kind, parts[-1]
        if kind not in (
            MemberKind.FILE,
            MemberKind.LINK,
            MemberKind.SYMLINK,
            MemberKind.DIRECTORY,
            MemberKind.FIFO,
        ):
            return None
        above = self._top
        for part in parts[:-1]:
            above = self._enter(namespace, above, part, member)
        if kind is MemberKind.DIRECTORY:
            return self._enter(namespace, above, name, member)
        if kind is MemberKind.LINK:
            self._link(namespace, above, name, member)
            return None
        if kind is MemberKind.SYMLINK and not member.target:
            raise ArchiveRejected(f"{member.text()}: symbolic link without a target", readable=True)
        # An existing file is replaced, never written through.
        if find(namespace, above, name) is not None:
            namespace.unlink(ROOT, above, name)
        if kind is MemberKind.SYMLINK:
            node = namespace.symlink(ROOT, member.target, above, name)
        else:
            type_bits = S_IFREG if kind is MemberKind.FILE else S_IFIFO
            node = namespace.mknod(ROOT, above, name, type_bits | 0o600, 0)
        namespace.chown(ROOT, node, self._access.uid, self._access.gid)
        return node

    def _enter(self, namespace: Namespace, above: Node, name: bytes, member: Member) -> Node:
        """The directory `name`; create it if it is missing. Symbolic links are not followed."""
        node = find(namespace, above, name)
        if node is None:
            node = namespace.mkdir(ROOT, above, name, 0o755)
            namespace.chown(ROOT, node, self._access.uid, self._access.gid)
        elif namespace.stat(node).mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR, f"{member.text()}: {_text(name)} is not a directory")
        return node

    def _link(self, namespace: Namespace, above: Node, name: bytes, member: Member) -> None:
        node: Node | None = self._top
        parts = _parts(member.target)
        for part in parts:
            node = None if node is None else find(namespace, node, part)
        if node is None or not parts:
            raise KernelError(
                Errno.ENOENT,
                f"{member.text()}: hard link to missing {_text(member.target)}",
            )
        existing = find(namespace, above, name)
        if existing != node:
            if existing is not None:
                namespace.unlink(ROOT, above, name)
            namespace.link(ROOT, node, above, name)


def fill(access: HostAccess, node: Node, member: Member, reader: TarReader) -> None:
    """Write a member's content to an empty file."""
    for offset, data in reader.pieces():
        done = 0
        while done < len(data):
            with access as namespace:
                done += namespace.write(ROOT, node, offset + done, data[done:])
    with access as namespace:
        if namespace.size(node) < member.size:
            namespace.resize(ROOT, node, member.size)


def _parts(name: bytes) -> list[bytes]:
    """The components of a member's name. A leading slash is dropped, as tar does."""
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise ArchiveRejected(
            f"a member's name leads outside the directory: {_text(name)}", readable=True
        )
    return parts


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name[:200].decode("utf-8", "replace")
