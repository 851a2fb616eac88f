"""`files.upload` of a directory: what is sent, whether it fits, and nothing half done.

Owns `upload_directory`. Rules: everything that can fail is tried before the first byte is sent: the
directory is listed, every file must be readable, and all of them must fit. A directory that is new
in the sandbox is filled under another name and renamed at the end, so that it appears complete or
not at all. In an existing directory, files are replaced one by one.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from wasmsand.sdk.errors import FileError, SandboxError, file_error, no_space
from wasmsand.sdk.ignoring import IgnoreRules, rules_above
from wasmsand.sdk.transfer import pack_entries

if TYPE_CHECKING:
    from wasmsand.sdk.backend import Backend

_BLOCK: Final = 4096


class _Found(NamedTuple):
    """A file, link or directory that is sent."""

    path: str
    """On this machine."""
    name: str
    """Relative to the directory, with slashes."""
    status: os.stat_result


def upload_directory(
    backend: Backend, source: Path, guest: str, excluded: IgnoreRules, *, gitignore: bool
) -> None:
    """Copy a directory of this machine to the path `guest`. Raises `OSError` for a file that cannot
    be read, and `FileError`."""
    found = list(_selected(source, excluded, gitignore))
    there = _existing(backend, guest)
    _check_conflicts(found, there or {}, guest)
    _check_fits(backend, found, there or {}, guest)
    packed = _Packed(found)
    if there is not None:
        packed.send(backend, guest)
        return
    directory, name = posixpath.split(guest.rstrip("/"))
    fresh = posixpath.join(directory, f".{name[:100]}.{os.urandom(8).hex()}.upload")
    try:
        packed.send(backend, fresh)
        backend.rename(fresh, guest)
    except BaseException:
        with suppress(FileError):
            backend.remove(fresh, recursive=True)
        raise


class _Packed:
    """What is sent. Keeps the error of a file that cannot be read any more: a backend that talks to
    a server would take it for an error of the connection."""

    def __init__(self, found: list[_Found]) -> None:
        self._found = found
        self._failure: OSError | None = None

    def send(self, backend: Backend, path: str) -> None:
        """Unpack everything into the directory `path`."""
        try:
            backend.import_tar(path, self._pieces())
        except SandboxError:
            if self._failure is not None:
                raise self._failure from None
            raise

    def _pieces(self) -> Iterator[bytes]:
        try:
            yield from pack_entries((each.path, each.name) for each in self._found)
        except OSError as error:
            self._failure = error
            raise


def _selected(source: Path, excluded: IgnoreRules, gitignore: bool) -> Iterator[_Found]:
    """Everything below a directory that is not left out, directories before their content."""
    rules, prefix = rules_above(source) if gitignore else (IgnoreRules(), "")
    todo = [("", rules)]
    while todo:
        base, rules = todo.pop()
        directory = source / base
        in_repository = "/".join(filter(None, (prefix, base)))
        if gitignore:
            rules = rules.with_file(directory, in_repository)
        below = []
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            name = f"{base}/{entry.name}" if base else entry.name
            is_directory = entry.is_dir(follow_symlinks=False)
            path = f"{in_repository}/{entry.name}" if in_repository else entry.name
            if excluded.ignore(name, is_directory=is_directory):
                continue
            # Git never looks at its own directory.
            is_own = gitignore and entry.name == ".git"
            if not is_own and rules.ignore(path, is_directory=is_directory):
                continue
            status = entry.stat(follow_symlinks=False)
            if is_directory:
                below.append((name, IgnoreRules() if is_own else rules))
            elif stat.S_ISREG(status.st_mode) and not os.access(entry.path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), entry.path)
            yield _Found(entry.path, name, status)
        todo += reversed(below)


def _existing(backend: Backend, guest: str) -> dict[str, tuple[str, int]] | None:
    """Type and size of everything below the directory `guest`; None if there is nothing."""
    try:
        info = backend.stat(guest)
    except FileError as error:
        if error.errno_name != "ENOENT":
            raise
        return None
    if info.type != "dir":
        raise file_error(f"ENOTDIR: Not a directory ({guest})", "ENOTDIR", guest)
    start = len(guest.rstrip("/")) + 1
    listed = backend.list_directory(guest, recursive=True)
    return {entry.path[start:]: (entry.type, entry.size) for entry in listed}


def _check_conflicts(found: list[_Found], there: dict[str, tuple[str, int]], guest: str) -> None:
    """Refuse to replace a directory by a file, or a file by a directory."""
    for each in found if there else ():
        kind = there.get(each.name, ("", 0))[0]
        is_directory = stat.S_ISDIR(each.status.st_mode)
        path = posixpath.join(guest, each.name)
        if is_directory and kind not in ("", "dir", "symlink"):
            raise file_error(f"ENOTDIR: Not a directory ({path})", "ENOTDIR", path)
        if not is_directory and kind == "dir":
            raise file_error(f"EISDIR: Is a directory ({path})", "EISDIR", path)


def _check_fits(
    backend: Backend, found: list[_Found], there: dict[str, tuple[str, int]], guest: str
) -> None:
    """ENOSPC if the files do not fit."""
    needed = sum(_blocks(each.status.st_size) for each in found if _is_file(each))
    freed = sum(_blocks(there[each.name][1]) for each in found if each.name in there)
    new = sum(each.name not in there for each in found)
    usage = backend.usage()
    if needed - freed > usage.fs_limit_bytes - usage.fs_bytes:
        raise no_space(guest, usage.fs_limit_bytes)
    if new > usage.max_inodes - usage.inodes:
        message = f"ENOSPC: {usage.max_inodes} files may exist; raise max_inodes ({guest})"
        raise file_error(message, "ENOSPC", guest)


def _is_file(found: _Found) -> bool:
    return stat.S_ISREG(found.status.st_mode)


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
