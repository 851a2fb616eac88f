"""Random sequences of file operations, and a runner for a Namespace.

`Script` makes operations for `reference.LinuxRunner` and `TreeRunner` alike.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from tests.kernel.vfs.reference import IDENTITIES, Operation, Result, pattern
from wasmsand.kernel import flags as numbers
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs import NOW, ROOT, Credentials, ImageBuilder, Namespace, Node, Stat, TreeFs
from wasmsand.kernel.vfs import model as m

DEPTH = 12
"""Directories above the working directory, so that '..' stays inside."""
TOP = "/".join(f"above{i}" for i in range(DEPTH))
PRIVILEGED = os.name == "posix" and os.geteuid() == 0


def sysctl(name: str) -> int:
    try:
        return int(Path("/proc/sys/fs", name).read_text())
    except OSError:
        return 0


HARD_LINKS_PROTECTED = bool(sysctl("protected_hardlinks"))
STICKY_PROTECTED = any(sysctl(f"protected_{what}") for what in ("symlinks", "regular", "fifos"))


class TreeRunner:
    """Runs the same operations on a Namespace."""

    def __init__(self) -> None:
        self.namespace = Namespace(TreeFs(ImageBuilder().build()))
        node = self.namespace.root
        for name in TOP.split("/"):
            node = self.namespace.mkdir(ROOT, node, name.encode(), 0o755)
            self.namespace.chown(ROOT, node, os.geteuid(), os.getegid())
        self.top = self.cwd = node
        self.namespace.retain(node)
        self.namespace.chmod(ROOT, node, 0o777)
        self.mask = 0o022
        self.files: dict[int, tuple[Node, int]] = {}
        self.cred = ROOT

    def run(self, operation: Operation) -> Result:
        who, name, *arguments = operation
        if who >= 0:
            uid, gid, groups = IDENTITIES[who]
            self.cred = Credentials(uid, gid, frozenset(groups))
        else:
            groups = os.getgroups()
            self.cred = Credentials(os.geteuid(), os.getegid(), frozenset(groups))
        try:
            return ["ok", getattr(self, name)(*arguments)]
        except KernelError as error:
            return ["error", error.errno.name]

    def _find(self, path: str, follow: bool = True) -> Node:
        return self.namespace.resolve(self.cred, self.cwd, os.fsencode(path), follow=follow)

    def open(self, slot: int, path: str, flags: int, mode: int) -> None:
        node = self.namespace.open_node(
            self.cred, self.cwd, os.fsencode(path), flags, mode, self.mask
        )
        kind = self.namespace.stat(node).mode & numbers.S_IFMT
        readers = [n for n, f in self.files.values() if f & numbers.O_ACCMODE != numbers.O_WRONLY]
        if (
            kind == numbers.S_IFIFO
            and flags & numbers.O_ACCMODE == numbers.O_WRONLY
            and node not in readers
        ):
            raise KernelError(Errno.ENXIO)  # the error of the kernel's FIFO without a reader
        self.namespace.retain(node)
        self.close(slot)
        self.files[slot] = (node, flags)

    def close(self, slot: int) -> None:
        if slot in self.files:
            self.namespace.release(self.files.pop(slot)[0])

    def _open_file(self, slot: int, refused: int = -1) -> tuple[Node, int] | None:
        """The regular file of a slot, and its access mode; EBADF if that is the refused one."""
        if slot not in self.files:
            return None
        node, flags = self.files[slot]
        if self.namespace.stat(node).mode & numbers.S_IFMT != numbers.S_IFREG:
            return None
        if flags & numbers.O_ACCMODE == refused:
            raise KernelError(Errno.EBADF)
        return node, flags & numbers.O_ACCMODE

    def fwrite(self, slot: int, offset: int, size: int) -> int | None:
        file = self._open_file(slot, refused=numbers.O_RDONLY)
        if file is None:
            return None
        return self.namespace.write(self.cred, file[0], offset, pattern(offset, size))

    def fread(self, slot: int, offset: int, size: int) -> str | None:
        file = self._open_file(slot, refused=numbers.O_WRONLY)
        return None if file is None else self.namespace.read(file[0], offset, size).hex()

    def ftruncate(self, slot: int, size: int) -> None:
        file = self._open_file(slot)
        if file is not None:
            if file[1] == numbers.O_RDONLY:
                raise KernelError(Errno.EINVAL)
            self.namespace.resize(self.cred, file[0], size)

    def fstat(self, slot: int) -> list[int] | None:
        return summary(self.namespace.stat(self.files[slot][0])) if slot in self.files else None

    def mkdir(self, path: str, mode: int) -> None:
        self.namespace.mkdir(self.cred, self.cwd, os.fsencode(path), mode, self.mask)

    def rmdir(self, path: str) -> None:
        self.namespace.rmdir(self.cred, self.cwd, os.fsencode(path))

    def unlink(self, path: str) -> None:
        self.namespace.unlink(self.cred, self.cwd, os.fsencode(path))

    def symlink(self, target: str, path: str) -> None:
        self.namespace.symlink(self.cred, os.fsencode(target), self.cwd, os.fsencode(path))

    def link(self, path: str, new_path: str, follow: bool) -> None:
        node = self._find(path, follow)
        self.namespace.link(self.cred, node, self.cwd, os.fsencode(new_path))

    def mkfifo(self, path: str, mode: int) -> None:
        path_bytes = os.fsencode(path)
        self.namespace.mknod(self.cred, self.cwd, path_bytes, numbers.S_IFIFO | mode, 0, self.mask)

    def rename(self, path: str, new_path: str, flags: int) -> None:
        self.namespace.rename(
            self.cred, self.cwd, os.fsencode(path), self.cwd, os.fsencode(new_path), flags
        )

    def chmod(self, path: str, mode: int) -> None:
        self.namespace.chmod(self.cred, self._find(path), mode)

    def chown(self, path: str, uid: int, gid: int, follow: bool) -> None:
        self.namespace.chown(self.cred, self._find(path, follow), uid, gid)

    def truncate(self, path: str, size: int) -> None:
        self.namespace.truncate(self.cred, self._find(path), size)

    def utime(self, path: str, now: bool) -> int:
        node = self._find(path)
        self.namespace.utimens(
            self.cred, node, *((NOW, NOW) if now else (1_000_000_000, 2_000_000_000))
        )
        return 0 if now else self.namespace.stat(self._find(path)).mtime_ns // 1_000_000_000

    def access(self, path: str, mask: int) -> None:
        self.namespace.access(self.cred, self._find(path), mask)

    def stat(self, path: str, follow: bool) -> list[int]:
        return summary(self.namespace.stat(self._find(path, follow)))

    def readlink(self, path: str) -> str:
        return os.fsdecode(self.namespace.readlink(self._find(path, False)))

    def listdir(self, path: str) -> list[str]:
        flags = numbers.O_RDONLY | numbers.O_DIRECTORY
        node = self.namespace.open_node(self.cred, self.cwd, os.fsencode(path), flags)
        names: list[str] = []
        cookie = 0
        while entries := self.namespace.readdir(node, cookie, 3):
            names += [os.fsdecode(entry.name) for entry in entries]
            cookie = entries[-1].cookie
        assert names[:2] == [".", ".."]
        return sorted(names[2:])

    def umask(self, mask: int) -> None:
        self.mask = mask

    def chdir(self, path: str) -> None:
        node = self._find(path)
        if not m.is_directory(self.namespace.stat(node).mode):
            raise KernelError(Errno.ENOTDIR)
        self.namespace.access(self.cred, node, numbers.X_OK)
        self._enter(node)

    def go_home(self) -> None:
        self._enter(self.top)

    def _enter(self, node: Node) -> None:
        self.namespace.retain(node)
        if self.cwd != self.top:
            self.namespace.release(self.cwd)
        if node == self.top:
            self.namespace.release(node)
        self.cwd = node

    def getcwd(self) -> str:
        return os.path.relpath(os.fsdecode(self.namespace.path_of(self.cwd)), "/" + TOP)


def summary(status: Stat) -> list[int]:
    size = 0 if m.is_directory(status.mode) else status.size
    return [status.mode, status.nlink, status.uid, status.gid, size]


class Script:
    """Makes random operations on a few names, so that they affect each other."""

    NAMES = ("a", "b", "c", "dir", "sub", "ln")
    SIZES = (0, 1, 5, 4095, 4096, 65535, 65536, 70000, 131072, 200001)
    MODES = (0o755, 0o777, 0o700, 0o644, 0o600, 0o000, 0o111, 0o555, 0o4755, 0o2755, 0o2770, 0o6711)

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        sticky = () if STICKY_PROTECTED else (0o1777, 0o3777)
        self.modes = self.MODES + sticky

    def operations(self, count: int) -> list[Operation]:
        return [self.operation() for _ in range(count)]

    def path(self) -> str:
        choose = self.random
        if choose.random() < 0.03:
            return choose.choice(["", ".", "..", "./", "a" * 255, "a" * 256, "x/" * 2100, "dir/.."])
        depth = choose.choices([1, 2, 3], [5, 4, 1])[0]
        names = [choose.choice(self.NAMES) for _ in range(depth)]
        if choose.random() < 0.08:
            names.insert(choose.randrange(len(names) + 1), choose.choice([".", ".."]))
        path = choose.choice(["/", "/", "/", "//"]).join(names)
        return path + choose.choices(["", "/", "//", "/."], [30, 3, 1, 1])[0]

    def operation(self) -> Operation:
        choose = self.random
        name, weight = zip(*OPERATIONS.items(), strict=True)
        chosen = choose.choices(name, weight)[0]
        who = choose.choices([0, 1, 2], [4, 5, 2])[0] if PRIVILEGED else -1
        if PRIVILEGED and (chosen == "go_home" or (chosen == "link" and HARD_LINKS_PROTECTED)):
            who = 0
        return [who, chosen, *getattr(self, "_" + chosen)()]

    def _open(self) -> list[Any]:
        choose = self.random
        flags = choose.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
        for flag, chance in (
            (os.O_CREAT, 0.6), (os.O_EXCL, 0.1), (os.O_TRUNC, 0.2),
            (os.O_NOFOLLOW, 0.1), (os.O_DIRECTORY, 0.1),
        ):  # fmt: skip
            if choose.random() < chance:
                flags |= flag
        if flags & os.O_CREAT:
            flags &= ~os.O_DIRECTORY  # the meaning differs between versions of Linux
        else:
            flags &= ~os.O_EXCL  # undefined
        return [choose.randrange(4), self.path(), flags, choose.choice(self.modes)]

    def _close(self) -> list[Any]:
        return [self.random.randrange(4)]

    _fstat = _close

    def _fwrite(self) -> list[Any]:
        return [self.random.randrange(4), self.random.choice(self.SIZES), self.random.choice(
            self.SIZES[1:7])]  # fmt: skip

    def _fread(self) -> list[Any]:
        return [self.random.randrange(4), self.random.choice(self.SIZES), 140000]

    def _ftruncate(self) -> list[Any]:
        return [self.random.randrange(4), self.random.choice(self.SIZES)]

    def _mkdir(self) -> list[Any]:
        return [self.path(), self.random.choice(self.modes)]

    _mkfifo = _chmod = _mkdir

    def _rmdir(self) -> list[Any]:
        return [self.path()]

    _unlink = _readlink = _listdir = _chdir = _rmdir

    def _symlink(self) -> list[Any]:
        return [self.path(), self.path()]

    def _link(self) -> list[Any]:
        return [self.path(), self.path(), self.random.random() < 0.5]

    def _rename(self) -> list[Any]:
        return [self.path(), self.path(), self.random.choices([0, 1, 2, 3], [8, 1, 2, 0.2])[0]]

    def _chown(self) -> list[Any]:
        ids = [-1, 0, 1000, 1001, 2000] if PRIVILEGED else [-1, os.geteuid()]
        groups = ids if PRIVILEGED else [-1, os.getegid()]
        follow = self.random.random() < 0.7
        return [self.path(), self.random.choice(ids), self.random.choice(groups), follow]

    def _truncate(self) -> list[Any]:
        return [self.path(), self.random.choice(self.SIZES)]

    def _utime(self) -> list[Any]:
        return [self.path(), self.random.random() < 0.5]

    def _access(self) -> list[Any]:
        return [self.path(), self.random.randrange(8)]

    def _stat(self) -> list[Any]:
        return [self.path(), self.random.random() < 0.5]

    def _umask(self) -> list[Any]:
        return [self.random.choice([0, 0o022, 0o077, 0o002])]

    def _go_home(self) -> list[Any]:
        return []

    _getcwd = _go_home


OPERATIONS = {
    "open": 12, "close": 2, "fwrite": 6, "fread": 5, "ftruncate": 3, "fstat": 3, "mkdir": 10,
    "rmdir": 4, "unlink": 6, "symlink": 6, "link": 4, "mkfifo": 2, "rename": 10, "chmod": 6,
    "chown": 5, "truncate": 3, "utime": 2, "access": 3, "stat": 8, "readlink": 2, "listdir": 4,
    "umask": 1, "chdir": 3, "go_home": 2, "getcwd": 2,
}  # fmt: skip
