"""Runs file operations on the host's own Linux, as the reference for the kernel's.

As a program, it reads a JSON list of operations, runs them in the given directory, and writes a
JSON list of results. An operation is [who, name, arguments...]; a result is ["ok", value] or
["error", errno name]. `who` is an index into the identities, which only root can assume; identity
-1 is the user who runs the program.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import stat
import sys
from typing import Any

Operation = list[Any]
Result = list[Any]

IDENTITIES: list[tuple[int, int, list[int]]] = [
    (0, 0, []),
    (1000, 1000, [2000]),
    (1001, 1001, [1000]),
]
FIXED_TIME = 1_700_000_000_123_456_789
_libc = ctypes.CDLL(None, use_errno=True)


class LinuxRunner:
    """The state of a process: a working directory, a few open files, a umask."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.files: dict[int, int] = {}
        self.depth = 0
        os.chdir(top)
        os.umask(0o022)

    def run(self, operation: Operation) -> Result:
        who, name, *arguments = operation
        if who >= 0:
            uid, gid, groups = IDENTITIES[who]
            os.setgroups(groups)
            os.setegid(gid)
            os.seteuid(uid)
        try:
            return ["ok", getattr(self, name)(*arguments)]
        except OSError as error:
            return ["error", errno.errorcode[error.errno or 0]]
        finally:
            if who >= 0:
                os.seteuid(0)
                os.setegid(0)

    def open(self, slot: int, path: str, flags: int, mode: int) -> None:
        file = os.open(path, flags | os.O_NONBLOCK, mode)
        self.close(slot)
        self.files[slot] = file

    def close(self, slot: int) -> None:
        if slot in self.files:
            os.close(self.files.pop(slot))

    def fwrite(self, slot: int, offset: int, size: int) -> int | None:
        if not self._is_file(slot):
            return None
        return os.pwrite(self.files[slot], pattern(offset, size), offset)

    def fread(self, slot: int, offset: int, size: int) -> str | None:
        if not self._is_file(slot):
            return None
        return os.pread(self.files[slot], size, offset).hex()

    def ftruncate(self, slot: int, size: int) -> None:
        if self._is_file(slot):
            os.ftruncate(self.files[slot], size)

    def fstat(self, slot: int) -> list[int] | None:
        return summary(os.fstat(self.files[slot])) if slot in self.files else None

    def _is_file(self, slot: int) -> bool:
        return slot in self.files and stat.S_ISREG(os.fstat(self.files[slot]).st_mode)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(path, mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def symlink(self, target: str, path: str) -> None:
        os.symlink(target, path)

    def link(self, path: str, new_path: str, follow: bool) -> None:
        flags = 0x400 if follow else 0
        self._checked(_libc.linkat(-100, path.encode(), -100, new_path.encode(), flags))

    def mkfifo(self, path: str, mode: int) -> None:
        os.mkfifo(path, mode)

    def rename(self, path: str, new_path: str, flags: int) -> None:
        self._checked(_libc.renameat2(-100, path.encode(), -100, new_path.encode(), flags))

    def _checked(self, result: int) -> None:
        if result < 0:
            raise OSError(ctypes.get_errno(), "")

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def chown(self, path: str, uid: int, gid: int, follow: bool) -> None:
        os.chown(path, uid, gid, follow_symlinks=follow)

    def truncate(self, path: str, size: int) -> None:
        os.truncate(path, size)

    def utime(self, path: str, now: bool) -> int:
        os.utime(path, None if now else (1, 2), follow_symlinks=True)
        return 0 if now else int(os.stat(path).st_mtime)

    def access(self, path: str, mask: int) -> None:
        self._checked(_libc.faccessat(-100, path.encode(), mask, 0x200))

    def stat(self, path: str, follow: bool) -> list[int]:
        return summary(os.stat(path, follow_symlinks=follow))

    def readlink(self, path: str) -> str:
        return os.readlink(path)

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def umask(self, mask: int) -> None:
        os.umask(mask)

    def chdir(self, path: str) -> None:
        os.chdir(path)

    def go_home(self) -> None:
        os.chdir(self.top)

    def getcwd(self) -> str:
        return os.path.relpath(os.getcwd(), self.top)


def summary(status: os.stat_result) -> list[int]:
    """The fields that must be equal; the size of a directory depends on the file system."""
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return [status.st_mode, status.st_nlink, status.st_uid, status.st_gid, size]


def pattern(offset: int, size: int) -> bytes:
    """Bytes that depend on the offset at which they are written."""
    return bytes((offset + i) * 31 % 251 + 1 for i in range(size))


def main() -> None:
    runner = LinuxRunner(sys.argv[1])
    json.dump([runner.run(operation) for operation in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
