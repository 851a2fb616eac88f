"""Writing several files of a sandbox: all of them, or none.

Owns `FileWrite` and `write_files`. Rules: each file is written as by `SandboxFiles.write`, one
after the other, so programs may see some of them before the others. If one cannot be written, those
written before get their old content and mode back, and new files and directories are removed. A
program that fills the file system at that moment can prevent this for a file that had content.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError

if TYPE_CHECKING:
    from wasmsand.machine.files import SandboxFiles


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One file to write."""

    path: str
    """An absolute path."""
    data: bytes
    mode: int | None = None
    """Permission bits; None keeps those of an existing file."""


class NotWritten(Exception):
    """A file could not be written, and nothing has changed."""

    def __init__(self, path: str, error: KernelError) -> None:
        super().__init__(path)
        self.path = path
        self.error = error


def write_files(files: SandboxFiles, wanted: Sequence[FileWrite]) -> None:
    """Write all files. Raises `NotWritten`."""
    undo: list[Callable[[], None]] = []
    for each in wanted:
        try:
            undo.append(_undoing(files, each.path))
            files.write(each.path, each.data, mode=each.mode)
        except KernelError as error:
            for act in reversed(undo):
                with suppress(KernelError):
                    act()
            raise NotWritten(each.path, error) from None


def _undoing(files: SandboxFiles, path: str) -> Callable[[], None]:
    """What makes the file at `path` again what it is now."""
    missing: list[str] = []
    while not _exists(files, path if not missing else posixpath.dirname(missing[-1])):
        missing.append(path if not missing else posixpath.dirname(missing[-1]))
    if not missing:
        if files.stat(path).type != "file":
            return lambda: None  # writing to it will fail
        old, mode = files.keep(path), files.stat(path).mode
        return lambda: files.write_kept(path, old, mode)

    def remove() -> None:
        for name in missing:
            files.remove(name)

    return remove


def _exists(files: SandboxFiles, path: str) -> bool:
    if path in ("", "/"):
        return True
    try:
        files.stat(path, follow=True)
    except KernelError as error:
        if error.errno is Errno.ENOENT:
            return False
        raise
    return True
