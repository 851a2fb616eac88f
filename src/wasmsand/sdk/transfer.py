"""Copies files and directories between this machine and a sandbox.

Owns the only code of the SDK that writes to the host's disk. Rules: data from a sandbox is not
trusted. Nothing is written outside the directory that the caller names: names with `..` are
refused; a directory in a path must not be a symbolic link; an existing file is replaced, never
opened for writing; only symbolic links that cannot lead outside are created; hard links are created
only to files of the same archive. Holes are kept. Set-user-ID bits are dropped.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Final

from wasmsand.machine.tar_format import END, SECOND, ArchiveRejected, Member, MemberKind, padding
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_source import PieceSource
from wasmsand.machine.tar_writer import header
from wasmsand.sdk.errors import ArchiveError

_CHUNK: Final = 1024 * 1024
_EXTENTS_MAX: Final = 1 << 20
"""Most extents between the holes of one file."""
_LATEST_TIME: Final = 2**33 * SECOND


def pack_entries(entries: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """Files and directories of the host, each with its name in the archive, as pieces of a tar
    archive. Links are packed as links; sockets, devices and FIFOs are left out."""
    for path, name in entries:
        yield from _packed(path, name)
    yield END


def _packed(path: str, name: str) -> Iterator[bytes]:
    status = os.lstat(path)
    kind, size, target = MemberKind.FILE, 0, ""
    if stat.S_ISDIR(status.st_mode):
        kind = MemberKind.DIRECTORY
    elif stat.S_ISLNK(status.st_mode):
        kind, target = MemberKind.SYMLINK, os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        size = status.st_size
    else:
        return
    yield header(
        Member(
            name=_bytes(name.replace(os.sep, "/")),
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            size=size,
            mtime_ns=int(status.st_mtime) * SECOND,
            target=_bytes(target),
        )
    )
    if size:
        with open(path, "rb") as file:
            yield from _exactly(file, size)
    yield padding(size)


def _exactly(file: BufferedReader, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes of a file that may change, because the archive already states its
    size."""
    while size:
        piece = file.read(min(size, _CHUNK)) or bytes(min(size, _CHUNK))
        size -= len(piece)
        yield piece


def unpack_directory(pieces: Iterable[bytes], directory: Path) -> list[str]:
    """Unpack a tar archive into a directory of the host, which is created.

    Returns the names that were left out: links that may lead outside, and special files. Raises
    `ArchiveError` if the archive is invalid or leads outside.
    """
    directory.mkdir(parents=True, exist_ok=True)
    unpacking = _Unpacking(directory)
    reader = TarReader(PieceSource(pieces), _EXTENTS_MAX)
    try:
        for member in reader:
            unpacking.unpack(member, reader)
    except ArchiveRejected as error:
        raise ArchiveError(f"EINVAL: {error.detail}", "EINVAL", str(directory)) from None
    unpacking.make_links()
    return unpacking.left_out


def unpack_file(pieces: Iterable[bytes], target: Path) -> None:
    """Write the only file of a tar archive to `target`, whatever its name in the archive is.

    Raises `ArchiveError` if the archive is invalid or has no file.
    """
    reader = TarReader(PieceSource(pieces), _EXTENTS_MAX)
    try:
        member = next(iter(reader), None)
        if member is None or member.kind is not MemberKind.FILE:
            raise ArchiveRejected("the archive contains no file", readable=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            _fill(file, member, reader)
    except ArchiveRejected as error:
        raise ArchiveError(f"EINVAL: {error.detail}", "EINVAL", str(target)) from None


class _Unpacking:
    """Unpacks the members of one archive into one directory of the host."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._links: list[tuple[list[str], str]] = []
        self._written: set[tuple[int, int]] = set()
        """Device and inode number of each unpacked file."""
        self.left_out: list[str] = []

    def unpack(self, member: Member, reader: TarReader) -> None:
        """Create one member, or add it to `left_out`."""
        parts = _safe_parts(member.name)
        if not parts:
            return
        match member.kind:
            case MemberKind.DIRECTORY:
                _directory(self._top, parts).chmod(member.mode & 0o777 | 0o700)
            case MemberKind.FILE:
                path = _directory(self._top, parts[:-1]) / parts[-1]
                self._written.add(_write(path, member, reader))
            case MemberKind.LINK if self._link(parts, _safe_parts(member.target)):
                pass
            case MemberKind.SYMLINK if _stays_inside(_text(member.target), len(parts) - 1):
                self._links.append((parts, _text(member.target)))
            case _:
                self.left_out.append(_text(member.name))

    def _link(self, parts: list[str], target: list[str]) -> bool:
        """Create a hard link to a file of this archive; False if there is no such file."""
        if not target or target == parts:
            return False
        existing = _directory(self._top, target[:-1]) / target[-1]
        try:
            status = existing.lstat()
        except FileNotFoundError:
            return False
        if (status.st_dev, status.st_ino) not in self._written:
            return False
        path = _directory(self._top, parts[:-1]) / parts[-1]
        _make_way(path)
        os.link(existing, path, follow_symlinks=False)
        return True

    def make_links(self) -> None:
        """Create the symbolic links. Call it last, so that no member is written through a link."""
        for parts, target in self._links:
            path = _directory(self._top, parts[:-1]) / parts[-1]
            _make_way(path)
            path.symlink_to(target)


def _safe_parts(name: bytes) -> list[str]:
    parts = [part for part in _text(name).split("/") if part not in ("", ".")]
    if ".." in parts or any(os.sep in part for part in parts):
        raise ArchiveRejected(
            f"a name in the archive leads outside: {_text(name)[:200]}", readable=True
        )
    return parts


def _stays_inside(target: str, depth: int) -> bool:
    """Whether a link, `depth` directories below the top, cannot lead outside. Such a link is
    relative, does not go above the top, and has `..` only at the beginning, so that it never goes
    up from the target of another link."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    return not target.startswith("/") and ups <= depth and ".." not in parts[ups:]


def _directory(top: Path, parts: list[str]) -> Path:
    """The directory, created if it is missing. A symbolic link in the path is an error."""
    path = top
    for part in parts:
        path = path / part
        try:
            path.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise NotADirectoryError(f"{path} exists and is not a directory") from None
    return path


def _write(path: Path, member: Member, reader: TarReader) -> tuple[int, int]:
    """Write a file; returns its device and inode number."""
    _make_way(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, member.mode & 0o777 | 0o600), "wb") as file:
        _fill(file, member, reader)
        status = os.fstat(file.fileno())
    modified = max(0, min(member.mtime_ns, _LATEST_TIME))
    os.utime(path, ns=(modified, modified))
    return status.st_dev, status.st_ino


def _fill(file: BufferedWriter, member: Member, reader: TarReader) -> None:
    """Write the content of a member to an empty file, and keep its holes."""
    for offset, data in reader.pieces():
        file.seek(offset)
        file.write(data)
    file.truncate(member.size)


def _make_way(path: Path) -> None:
    """Remove an existing file or link."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
