"""Changes the files below the directory given by the first argument, at random but reproducibly,
and prints every outcome and the resulting tree. Runs natively and in a sandbox, with the same
output on the same tree. The second argument is the seed, the third the number of changes."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable

top, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.umask(0o022)
os.chdir(top)


def number(below: int) -> int:
    """The next random number; the generator is part of this file, so it never changes."""
    global seed
    seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
    return (seed >> 33) % below


NAMES = ("a", "b", "c", "dir", "sub", "link")


def path() -> str:
    return "/".join(NAMES[number(len(NAMES))] for _ in range(1 + number(3)))


def write() -> None:
    with open(path(), ("wb", "ab", "r+b", "xb")[number(4)]) as file:
        if number(2):
            try:
                file.seek(number(5000))
            except OSError:
                pass
        file.write(bytes([number(256)]) * number(6000))


def read() -> None:
    with open(path(), "rb") as file:
        print(hashlib.sha256(file.read()).hexdigest()[:8])


CHANGES: tuple[Callable[[], object], ...] = (
    write,
    write,
    read,
    lambda: os.truncate(path(), number(9000)),
    lambda: os.mkdir(path()),
    lambda: os.mkdir(path()),
    lambda: os.rmdir(path()),
    lambda: os.unlink(path()),
    lambda: os.rename(path(), path()),
    lambda: os.rename(path(), path()),
    lambda: os.link(path(), path(), follow_symlinks=False),
    lambda: os.symlink(path(), path()),
    lambda: os.chmod(path(), (0o777, 0o755, 0o700)[number(3)]),
    lambda: os.utime(path(), ns=(10**18, 10**18 + number(10**9))),
    lambda: print(sorted(os.listdir(path()))),
    lambda: print(stat.S_IFMT(os.lstat(path()).st_mode)),
)

for turn in range(count):
    change = number(len(CHANGES))
    try:
        CHANGES[change]()
        print(turn, change, "ok")
    except OSError as error:
        print(turn, change, errno.errorcode[error.errno or 0])


def show(place: str) -> None:
    for name in sorted(os.listdir(place)):
        each = os.path.join(place, name)
        found = os.lstat(each)
        kind = stat.S_IFMT(found.st_mode)
        what = ""
        if kind == stat.S_IFREG:
            with open(each, "rb") as file:
                what = hashlib.sha256(file.read()).hexdigest()[:16]
        elif kind == stat.S_IFLNK:
            what = os.readlink(each)
        mode = 0 if kind == stat.S_IFLNK else found.st_mode
        print(each, oct(mode), found.st_nlink if kind == stat.S_IFREG else "", what)
        if kind == stat.S_IFDIR:
            show(each)


show(".")
