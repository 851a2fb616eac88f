"""A sandbox's files at rest: what differs from the image, as a tar archive.

Owns the format of disk images: POSIX (pax) tar, whose global header says the version, with one
member per change in the order of `changes`; a member with the header `WASMSAND.removed` stands
for what is gone, and one with `WASMSAND.end` is the last; files with holes are stored as GNU tar
does (sparse format 1.0). Devices and sockets are left out.

Rules: what is read is not trusted: names are plain, sizes are charged as they are written, and
whatever is wrong is `DiskImageRejected`; a file is never held in memory as a whole.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFMT, S_IFREG
from wasmsand.kernel.limits import FILE_SIZE_MAX, IO_CHUNK, PATH_MAX
from wasmsand.kernel.vfs import ROOT, Change, FileContent, FileInode, Node, SymlinkInode, changes
from wasmsand.machine import trees

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_FORMAT: Final = "WASMSAND.disk"
_VERSION: Final = "1"
_REMOVED: Final = "WASMSAND.removed"
_END: Final = "WASMSAND.end"
"""An archive that was cut off between two members looks complete to `tarfile`."""
_SECOND: Final = 10**9


class DiskImageRejected(Exception):
    """An archive that is no disk image, or does not fit the sandbox."""


def write_disk_image(machine: Machine, stream: IO[bytes]) -> None:
    """Write what the sandbox's files differ in from a fresh sandbox."""
    with machine.lock:
        snapshot = machine.kernel.root.freeze()
    with tarfile.open(
        fileobj=stream,
        mode="w|",
        format=tarfile.PAX_FORMAT,
        pax_headers={_FORMAT: _VERSION},
        encoding="utf-8",
        errors="surrogateescape",
    ) as archive:
        for change in changes(snapshot):
            _write_change(archive, change)
        end = tarfile.TarInfo(".")
        end.pax_headers = {_END: "1"}
        archive.addfile(end)


def _write_change(archive: tarfile.TarFile, change: Change) -> None:
    member = tarfile.TarInfo(_text(change.path) or ".")
    inode = change.inode
    if inode is None:
        member.pax_headers = {_REMOVED: "1"}
        archive.addfile(member)
        return
    member.mode = inode.mode & 0o7777
    member.uid, member.gid = inode.uid, inode.gid
    member.mtime = inode.mtime // _SECOND
    member.pax_headers = {"mtime": f"{inode.mtime // _SECOND}.{inode.mtime % _SECOND:09}"}
    kind = inode.mode & S_IFMT
    if change.same_as is not None:
        member.type, member.linkname = tarfile.LNKTYPE, _text(change.same_as)
    elif kind == S_IFDIR:
        member.type = tarfile.DIRTYPE
    elif kind == S_IFIFO:
        member.type = tarfile.FIFOTYPE
    elif isinstance(inode, SymlinkInode):
        member.type, member.linkname = tarfile.SYMTYPE, _text(inode.target)
    elif isinstance(inode, FileInode):
        _write_file(archive, member, inode.content)
        return
    else:
        return
    archive.addfile(member)


def _write_file(archive: tarfile.TarFile, member: tarfile.TarInfo, content: FileContent) -> None:
    pieces = list(_data_of(content))
    head = b""
    if pieces != ([(0, content.size)] if content.size else []):
        words = [len(pieces), *(number for piece in pieces for number in piece)]
        head = b"".join(b"%d\n" % word for word in words)
        head += bytes(-len(head) % tarfile.BLOCKSIZE)
        member.pax_headers = {
            **member.pax_headers,
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": member.name,
            "GNU.sparse.realsize": str(content.size),
        }
    member.size = len(head) + sum(length for _, length in pieces)
    archive.addfile(member, _Reader(head, content, pieces))


def _data_of(content: FileContent) -> Iterator[tuple[int, int]]:
    """Offset and length of what is no hole."""
    offset = 0
    while offset < content.size:
        try:
            start = content.seek_data(offset)
        except KernelError:
            return
        offset = content.seek_hole(start)
        yield start, offset - start


class _Reader(io.RawIOBase):
    """What `tarfile` reads a member's bytes from."""

    def __init__(self, head: bytes, content: FileContent, pieces: list[tuple[int, int]]) -> None:
        self._stream = self._parts(head, content, pieces)
        self._rest = b""

    @staticmethod
    def _parts(head: bytes, content: FileContent, pieces: list[tuple[int, int]]) -> Iterator[bytes]:
        if head:
            yield head
        for offset, length in pieces:
            for start in range(offset, offset + length, IO_CHUNK):
                yield content.read(start, min(IO_CHUNK, offset + length - start))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            raise io.UnsupportedOperation("read to the end")
        parts = bytearray()
        while len(parts) < size:
            if not self._rest:
                self._rest = next(self._stream, b"")
                if not self._rest:
                    break
            taken = self._rest[: size - len(parts)]
            self._rest = self._rest[len(taken) :]
            parts += taken
        return bytes(parts)


def read_disk_image(machine: Machine, stream: IO[bytes]) -> None:
    """Do what `write_disk_image` has written to the files of a fresh sandbox."""
    loading = _Loading(machine)
    try:
        with tarfile.open(
            fileobj=stream, mode="r:", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            if archive.pax_headers.get(_FORMAT) != _VERSION:
                raise DiskImageRejected("not a disk image of this version")
            for member in archive:
                if _END in member.pax_headers:
                    loading.finish()
                    return
                loading.apply(archive, member)
        raise DiskImageRejected("the disk image is cut short")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise DiskImageRejected(f"not a disk image: {error}") from None
    except KernelError as error:
        raise DiskImageRejected(str(error)) from None


class _Loading:
    """Changes that are being done again."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._namespace = machine.kernel.namespace
        self._root = machine.kernel.namespace.root
        self._directory_times: list[tuple[Node, int]] = []

    def apply(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._plain(member.name)
        if member.issym() and len(member.linkname) >= PATH_MAX:
            raise DiskImageRejected(f"the link {member.name[:80]!r} is too long")
        with self._machine.lock:
            if _REMOVED in member.pax_headers:
                self._remove(path)
                return
            if not member.isdir():
                self._remove(path)
            node = self._make(archive, member, path)
            if node is None:
                return
            mtime = _nanoseconds(member)
            self._namespace.chown(ROOT, node, member.uid, member.gid)
            if not member.issym():
                self._namespace.chmod(ROOT, node, member.mode & 0o7777)
            self._namespace.utimens(ROOT, node, None, mtime)
            if member.isdir():
                self._directory_times.append((node, mtime))

    def finish(self) -> None:
        """Entries that were made later have changed the times of their directories."""
        with self._machine.lock:
            for node, mtime in self._directory_times:
                try:
                    self._namespace.utimens(ROOT, node, None, mtime)
                except KernelError as error:
                    if error.errno is not Errno.ENOENT:  # a later change may have removed it
                        raise

    @staticmethod
    def _plain(name: str) -> bytes:
        path = name.encode("utf-8", "surrogateescape")
        if path == b".":
            return b"/"
        parts = path.split(b"/")
        if len(path) >= PATH_MAX or b"\0" in path or {b"", b".", b".."} & set(parts):
            raise DiskImageRejected(f"{name[:80]!r} is no plain relative path")
        return b"/" + path

    def _remove(self, path: bytes) -> None:
        namespace = self._namespace
        try:
            node = namespace.resolve(ROOT, self._root, path, follow=False)
        except KernelError as error:
            if error.errno is Errno.ENOENT:
                return
            raise
        if namespace.stat(node).mode & S_IFMT == S_IFDIR:
            trees.remove_below(namespace, node)
            namespace.rmdir(ROOT, self._root, path)
        else:
            namespace.unlink(ROOT, self._root, path)

    def _make(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: bytes) -> Node | None:
        namespace, root = self._namespace, self._root
        if member.isdir():
            try:
                return namespace.resolve(ROOT, root, path, follow=False)
            except KernelError as error:
                if error.errno is not Errno.ENOENT:
                    raise
            return namespace.mkdir(ROOT, root, path, 0o700)
        if member.islnk():
            target = namespace.resolve(ROOT, root, self._plain(member.linkname), follow=False)
            namespace.link(ROOT, target, root, path)
            return None  # it has its attributes already
        if member.issym():
            target_bytes = member.linkname.encode("utf-8", "surrogateescape")
            return namespace.symlink(ROOT, target_bytes, root, path)
        if member.isfifo():
            return namespace.mknod(ROOT, root, path, S_IFIFO | 0o600)
        if not member.isreg():
            raise DiskImageRejected(f"{member.name[:80]!r} is of an unknown type")
        node = namespace.mknod(ROOT, root, path, S_IFREG | 0o600)
        self._fill(archive, member, node)
        return node

    def _fill(self, archive: tarfile.TarFile, member: tarfile.TarInfo, node: Node) -> None:
        source = archive.extractfile(member)
        assert source is not None
        if not 0 <= member.size <= FILE_SIZE_MAX:
            raise DiskImageRejected(f"{member.name[:80]!r} is too large")
        self._namespace.resize(ROOT, node, member.size)
        pieces = getattr(member, "sparse", None)
        for offset, length in pieces if pieces is not None else [(0, member.size)]:
            source.seek(offset)
            done = 0
            while done < length:
                data = source.read(min(IO_CHUNK, length - done))
                if not data:
                    raise DiskImageRejected(f"{member.name[:80]!r} is cut short")
                for start in range(0, len(data), IO_CHUNK):
                    done += self._write(node, offset + done, data[start : start + IO_CHUNK])

    def _write(self, node: Node, offset: int, data: bytes) -> int:
        done = 0
        while done < len(data):
            done += self._namespace.write(ROOT, node, offset + done, data[done:])
        return done


def _nanoseconds(member: tarfile.TarInfo) -> int:
    seconds, _, fraction = member.pax_headers.get("mtime", str(member.mtime)).partition(".")
    return int(seconds) * _SECOND + int((fraction + "000000000")[:9])


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
