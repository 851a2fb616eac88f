"""Trees of a sandbox's files as tar archives, out and in.

Rules: archives are made and read in pieces, never as a whole; the lock is held for one file
at a time. What comes in is not trusted: nothing is written outside the directory that was
named, links are never followed on the way, and the archive may hold no more than the sandbox
can, packed or not. What is made belongs to the sandbox's user.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import IO_CHUNK, MIB
from wasmsand.kernel.vfs import ROOT, Namespace, Node
from wasmsand.machine import trees

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_TYPES: Final = {
    S_IFREG: tarfile.REGTYPE,
    S_IFDIR: tarfile.DIRTYPE,
    S_IFLNK: tarfile.SYMTYPE,
    S_IFIFO: tarfile.FIFOTYPE,
}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_PIECE: Final = 65536
_LATEST_TIME: Final = 2**33
_HEADERS_PER_ENTRY: Final = 4096
"""Bytes of headers that an entry of an archive has at most, on average."""
_READS_AT_END: Final = 4
"""Reads behind the end of an archive that has none of its closing blocks."""


def export_tar(machine: Machine, path: str) -> Iterator[bytes]:
    """A file, or everything below a directory, as pieces of a tar archive.

    Sockets and devices are left out, and files that go away meanwhile.
    """
    namespace = machine.kernel.namespace
    with machine.lock:
        top = namespace.resolve(ROOT, namespace.root, _bytes(path))
        base = namespace.path_of(top)
        if namespace.stat(top).mode & S_IFMT == S_IFDIR:
            found = [entry.path for entry in trees.walk(namespace, top)]
        else:
            base, _, name = base.rpartition(b"/")
            found = [name]
    return _joined(_pieces(machine, base, found))


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces of some size: most headers are 512 bytes."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _pieces(machine: Machine, base: bytes, found: list[bytes]) -> Iterator[bytes]:
    # Retains no node: the end of a generator may run in any thread, also in one that has the
    # lock, so nothing could release it then.
    holes = 0
    for name in found:
        path = base + b"/" + name
        with machine.lock:
            node = trees.find(machine.kernel.namespace, machine.kernel.namespace.root, path)
            info = None if node is None else _header(machine.kernel.namespace, node, name)
            if node is None or info is None:
                continue
            stat = machine.kernel.namespace.stat(node)
        holes += max(0, info.size - stat.blocks * 512)
        machine.files.require_few_holes(holes, _text(path))
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        yield from _content(machine, path, node, info.size)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _content(machine: Machine, path: bytes, node: Node, size: int) -> Iterator[bytes]:
    """The bytes of one file, and zeros to a whole block. One that shrinks or goes away
    meanwhile ends in zeros: its size has been told already."""
    namespace = machine.kernel.namespace
    offset = 0
    while offset < size:
        wanted = min(size - offset, IO_CHUNK)
        with machine.lock:
            unchanged = trees.find(namespace, namespace.root, path) == node
            piece = namespace.read(node, offset, wanted) if unchanged else b""
        yield piece or bytes(wanted)
        offset += len(piece) or wanted
    yield bytes(-size % tarfile.BLOCKSIZE)


def _header(namespace: Namespace, node: Node, name: bytes) -> tarfile.TarInfo | None:
    stat = namespace.stat(node)
    kind = stat.mode & S_IFMT
    if kind not in _TYPES:
        return None
    info = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    info.type = _TYPES[kind]
    info.mode = stat.mode & 0o7777
    info.uid, info.gid = stat.uid, stat.gid
    info.mtime = stat.mtime_ns // 10**9
    if kind == S_IFREG:
        info.size = stat.size
    elif kind == S_IFLNK:
        info.linkname = namespace.readlink(node).decode("utf-8", "surrogateescape")
    return info


def import_tar(machine: Machine, path: str, pieces: Iterable[bytes]) -> None:
    """Unpack a tar archive, plain or compressed by gzip, below a directory, which is made.

    EINVAL for what is no archive, and for a name that would leave the directory; what was
    unpacked before stays.
    """
    limits = machine.kernel.limits
    most = limits.fs_limit_bytes + limits.max_inodes * _HEADERS_PER_ENTRY + MIB
    machine.files.mkdir(path, parents=True)
    namespace = machine.kernel.namespace
    with machine.lock:
        top = namespace.resolve(ROOT, namespace.root, _bytes(path))
        namespace.retain(top)
    try:
        source = _Bounded(_unpacked(_PieceReader(pieces)), most)
        with tarfile.open(fileobj=source, mode="r|", errorlevel=2) as archive:
            unpacker = _Unpacker(machine, top, archive)
            for member in archive:
                unpacker.unpack(member)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, UnicodeError, ValueError) as error:
        raise KernelError(Errno.EINVAL, f"not a tar archive: {error}") from None
    finally:
        with machine.lock:
            namespace.release(top)


class _Unpacker:
    """Members of one archive become files below one directory."""

    def __init__(self, machine: Machine, top: Node, archive: tarfile.TarFile) -> None:
        self._lock = machine.lock
        self._namespace = machine.kernel.namespace
        self._identity = machine.identity
        self._top = top
        self._archive = archive

    def unpack(self, member: tarfile.TarInfo) -> None:
        """Make one member; kinds that are no part of a tree of files are left out."""
        parts = _parts(member.name)
        if not parts:
            return
        namespace = self._namespace
        with self._lock:
            above = self._directory(parts[:-1], member.name)
            name = parts[-1]
            if member.isdir():
                node = self._enter(above, name, member.name)
            elif member.issym():
                self._clear(above, name)
                node = namespace.symlink(ROOT, _bytes(member.linkname), above, name)
            elif member.islnk():
                self._link(above, name, member)
                return
            elif member.isreg() or member.isfifo():
                self._clear(above, name)
                kind = S_IFREG if member.isreg() else S_IFIFO
                node = namespace.mknod(ROOT, above, name, kind | 0o600, 0)
            else:
                return
            namespace.chown(ROOT, node, self._identity.uid, self._identity.gid)
            namespace.retain(node)
        try:
            if member.isreg():
                self._fill(node, member)
            with self._lock:
                if not member.issym():
                    namespace.chmod(ROOT, node, member.mode & 0o7777)
                modified = max(0, min(int(member.mtime), _LATEST_TIME)) * 10**9
                namespace.utimens(ROOT, node, None, modified)
        finally:
            with self._lock:
                namespace.release(node)

    def _directory(self, parts: list[bytes], whole: str) -> Node:
        node = self._top
        for part in parts:
            node = self._enter(node, part, whole)
        return node

    def _enter(self, above: Node, name: bytes, whole: str) -> Node:
        """The directory `name`, which is made if it is missing. A link is not followed."""
        node = trees.find(self._namespace, above, name)
        if node is None:
            node = self._namespace.mkdir(ROOT, above, name, 0o755)
            self._namespace.chown(ROOT, node, self._identity.uid, self._identity.gid)
        elif self._namespace.stat(node).mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR, f"{whole}: {_text(name)} is not a directory")
        return node

    def _clear(self, above: Node, name: bytes) -> None:
        """A file that is there is replaced, and never written through."""
        if trees.find(self._namespace, above, name) is not None:
            self._namespace.unlink(ROOT, above, name)

    def _link(self, above: Node, name: bytes, member: tarfile.TarInfo) -> None:
        parts = _parts(member.linkname)
        node: Node | None = self._top
        for part in parts:
            node = None if node is None else trees.find(self._namespace, node, part)
        if node is None or not parts:
            raise KernelError(Errno.ENOENT, f"{member.name}: a link to {member.linkname}")
        if trees.find(self._namespace, above, name) != node:
            self._clear(above, name)
            self._namespace.link(ROOT, node, above, name)

    def _fill(self, node: Node, member: tarfile.TarInfo) -> None:
        content = self._archive.extractfile(member)
        assert content is not None, "a regular member has content"
        offset = 0
        while piece := content.read(IO_CHUNK):
            done = 0
            while done < len(piece):
                with self._lock:
                    done += self._namespace.write(ROOT, node, offset + done, piece[done:])
            offset += len(piece)


def _parts(name: str) -> list[bytes]:
    """The components of a member's name. A leading slash is dropped, as tar does."""
    parts = [part for part in _bytes(name).split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise KernelError(Errno.EINVAL, f"a member of the archive leads outside: {name}")
    return parts


class _PieceReader(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _unpacked(raw: _PieceReader) -> io.BufferedIOBase:
    source = io.BufferedReader(raw, IO_CHUNK)
    if source.peek(2)[:2] == _GZIP_MAGIC:
        return gzip.GzipFile(fileobj=source, mode="rb")
    return source


class _Bounded(io.RawIOBase):
    """A file of which no more than `most` bytes can be read: a small archive may unpack to any
    size, and its headers are read as a whole."""

    def __init__(self, source: io.BufferedIOBase, most: int) -> None:
        super().__init__()
        self._source = source
        self._left = most
        self._reads_at_end = 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        if not data and size:
            # `tarfile` skips content by reading, also behind the end: for ever, if a header
            # says that the content is long enough.
            self._reads_at_end += 1
            if self._reads_at_end > _READS_AT_END:
                raise EOFError("the archive is cut short")
        self._left -= len(data)
        if self._left < 0:
            raise KernelError(
                Errno.ENOSPC, "the archive holds more than the file system; raise fs_limit_bytes"
            )
        return data


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
