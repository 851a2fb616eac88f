"""Files and directories between this machine and a sandbox.

Owns the only code of the SDK that writes to the host's disk. Rules: what comes from a sandbox
is not trusted. Nothing is written outside the directory that the caller named: names with
`..` are refused, directories on the way must be directories and not links, a file that is
there is replaced and never written through, and of symbolic links only those are made that
cannot lead outside; hard links lead to files that were written before. Holes stay holes.
Set-user-id bits are dropped.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Final

from wasmsand.machine.tar_format import END, SECOND, ArchiveRejected, Kind, Member, padding
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_source import PieceSource
from wasmsand.machine.tar_writer import header
from wasmsand.sdk.errors import ArchiveError

_CHUNK: Final = 1024 * 1024
_EXTENTS_MAX: Final = 1 << 20
"""Pieces between holes that a file may have."""
_LATEST_TIME: Final = 2**33 * SECOND


def pack_directory(directory: Path) -> Iterator[bytes]:
    """Everything below a directory of the host, as pieces of a tar archive.

    Links are packed as links; sockets, devices and FIFOs are left out.
    """
    for folder, folders, names in os.walk(directory, onerror=_raise):
        folders.sort()
        for name in sorted([*folders, *names]):
            path = os.path.join(folder, name)
            yield from _packed(path, os.path.relpath(path, directory))
    yield END


def _raise(error: OSError) -> None:
    raise error


def _packed(path: str, name: str) -> Iterator[bytes]:
    status = os.lstat(path)
    kind, size, target = Kind.FILE, 0, ""
    if stat.S_ISDIR(status.st_mode):
        kind = Kind.DIRECTORY
    elif stat.S_ISLNK(status.st_mode):
        kind, target = Kind.SYMLINK, os.readlink(path)
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
    """`size` bytes of a file that may change: its size has been told already."""
    while size:
        piece = file.read(min(size, _CHUNK)) or bytes(min(size, _CHUNK))
        size -= len(piece)
        yield piece


def unpack_directory(pieces: Iterable[bytes], directory: Path) -> list[str]:
    """Unpack a tar archive below a directory of the host, which is made.

    Returns the names of what was left out: links that may lead outside, FIFOs and the like.
    Raises `ArchiveError` for what is no archive or leads outside.
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


class _Unpacking:
    """Members of one archive become files below one directory of the host."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._links: list[tuple[list[str], str]] = []
        self._written: set[tuple[int, int]] = set()
        """Device and number of each file of this archive."""
        self.left_out: list[str] = []

    def unpack(self, member: Member, reader: TarReader) -> None:
        """Make one member, or note that it is left out."""
        parts = _safe_parts(member.name)
        if not parts:
            return
        match member.kind:
            case Kind.DIRECTORY:
                _directory(self._top, parts).chmod(member.mode & 0o777 | 0o700)
            case Kind.FILE:
                path = _directory(self._top, parts[:-1]) / parts[-1]
                self._written.add(_write(path, member, reader))
            case Kind.LINK if self._link(parts, _safe_parts(member.target)):
                pass
            case Kind.SYMLINK if _stays_inside(_text(member.target), len(parts) - 1):
                self._links.append((parts, _text(member.target)))
            case _:
                self.left_out.append(_text(member.name))

    def _link(self, parts: list[str], target: list[str]) -> bool:
        """Give a file of this archive another name; False if there is none."""
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
        """Last, so that nothing of this archive can be written through one."""
        for parts, target in self._links:
            path = _directory(self._top, parts[:-1]) / parts[-1]
            _make_way(path)
            path.symlink_to(target)


def _safe_parts(name: bytes) -> list[str]:
    parts = [part for part in _text(name).split("/") if part not in ("", ".")]
    if ".." in parts or any(os.sep in part for part in parts):
        raise ArchiveRejected(
            f"a name of the archive leads outside: {_text(name)[:200]}", readable=True
        )
    return parts


def _stays_inside(target: str, depth: int) -> bool:
    """Whether a link cannot lead out of a tree of such links, `depth` directories below its
    top: it is relative, goes up no further than the top, and `..` comes first, so that it never
    goes up from where another link leads."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    return not target.startswith("/") and ups <= depth and ".." not in parts[ups:]


def _directory(top: Path, parts: list[str]) -> Path:
    """The directory, made if it is missing; a link on the way is an error."""
    path = top
    for part in parts:
        path = path / part
        try:
            path.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise NotADirectoryError(f"{path} is in the way: not a directory") from None
    return path


def _write(path: Path, member: Member, reader: TarReader) -> tuple[int, int]:
    """Write a file; returns its device and number."""
    _make_way(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, member.mode & 0o777 | 0o600), "wb") as file:
        for offset, data in reader.pieces():
            file.seek(offset)
            file.write(data)
        file.truncate(member.size)
        status = os.fstat(file.fileno())
    modified = max(0, min(member.mtime_ns, _LATEST_TIME))
    os.utime(path, ns=(modified, modified))
    return status.st_dev, status.st_ino


def _make_way(path: Path) -> None:
    """Remove a file or link that is there."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
