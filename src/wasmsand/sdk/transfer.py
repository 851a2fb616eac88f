"""Files and directories between this machine and a sandbox.

Owns the only code of the SDK that writes to the host's disk. Rules: what comes from a sandbox
is not trusted. Nothing is written outside the directory that the caller named: names with
`..` are refused, directories on the way must be directories and not links, a file that is
there is replaced and never written through, and of symbolic links only those are made that
cannot lead outside. Set-user-id bits are dropped.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from wasmsand.sdk.errors import FileError

_CHUNK: Final = 1024 * 1024


def pack_directory(directory: Path) -> Iterator[bytes]:
    """Everything below a directory of the host, as pieces of a tar archive.

    Links are packed as links; sockets, devices and FIFOs are left out.
    """
    for folder, folders, names in os.walk(directory, onerror=_raise):
        folders.sort()
        for name in sorted([*folders, *names]):
            path = os.path.join(folder, name)
            yield from _packed(path, os.path.relpath(path, directory))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _raise(error: OSError) -> None:
    raise error


def _packed(path: str, name: str) -> Iterator[bytes]:
    status = os.lstat(path)
    info = tarfile.TarInfo(name.replace(os.sep, "/"))
    info.mode = stat.S_IMODE(status.st_mode)
    info.mtime = int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        info.type = tarfile.SYMTYPE
        info.linkname = os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        info.size = status.st_size
    else:
        return
    yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    if info.size:
        with open(path, "rb") as file:
            yield from _exactly(file, info.size)
    yield bytes(-info.size % tarfile.BLOCKSIZE)


def _exactly(file: io.BufferedReader, size: int) -> Iterator[bytes]:
    """`size` bytes of a file that may change: its size has been told already."""
    while size:
        piece = file.read(min(size, _CHUNK)) or bytes(min(size, _CHUNK))
        size -= len(piece)
        yield piece


def unpack_directory(pieces: Iterable[bytes], directory: Path) -> list[str]:
    """Unpack a tar archive below a directory of the host, which is made.

    Returns the names of what was left out: links that may lead outside, FIFOs and the like.
    """
    directory.mkdir(parents=True, exist_ok=True)
    left_out: list[str] = []
    links: list[tuple[list[str], str]] = []
    with tarfile.open(fileobj=PieceFile(pieces), mode="r|", errorlevel=2) as archive:
        for member in archive:
            parts = _safe_parts(member.name)
            if not parts:
                continue
            if member.isdir():
                _directory(directory, parts).chmod(member.mode & 0o777 | 0o700)
            elif member.isreg():
                content = archive.extractfile(member)
                assert content is not None, "a regular member has content"
                _write(_directory(directory, parts[:-1]) / parts[-1], content, member)
            elif member.issym() and _stays_inside(member.linkname, len(parts) - 1):
                links.append((parts, member.linkname))
            else:
                left_out.append(member.name)
    # Last, so that nothing of this archive can be written through one.
    for parts, target in links:
        path = _directory(directory, parts[:-1]) / parts[-1]
        _make_way(path)
        path.symlink_to(target)
    return left_out


def _safe_parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or any(os.sep in part or "\0" in part for part in parts):
        raise FileError(f"EINVAL: a name of the archive leads outside: {name}", "EINVAL", name)
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


def _write(path: Path, content: IO[bytes], member: tarfile.TarInfo) -> None:
    _make_way(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, member.mode & 0o777 | 0o600), "wb") as file:
        shutil.copyfileobj(content, file, _CHUNK)
    os.utime(path, (member.mtime, member.mtime))


def _make_way(path: Path) -> None:
    """Remove a file or link that is there."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass


class PieceFile(io.RawIOBase):
    """Pieces of bytes as a file to be read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._rest = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        taken = [self._rest]
        count = len(self._rest)
        while size < 0 or count < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            taken.append(piece)
            count += len(piece)
        data = b"".join(taken)
        if 0 <= size < len(data):
            data, self._rest = data[:size], data[size:]
        else:
            self._rest = b""
        return data
