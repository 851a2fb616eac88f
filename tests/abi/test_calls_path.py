"""Names and metadata."""

from __future__ import annotations

import pytest

from tests.abi.caller import AT_FDCWD, Caller
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import (
    AT_EACCESS,
    AT_EMPTY_PATH,
    AT_REMOVEDIR,
    AT_SYMLINK_FOLLOW,
    AT_SYMLINK_NOFOLLOW,
    O_CREAT,
    O_DIRECTORY,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFREG,
)

UTIME_NOW, UTIME_OMIT = 0x3FFFFFFF, 0x3FFFFFFE


class Statx:
    """struct statx, as a guest reads it."""

    def __init__(self, caller: Caller, path: bytes, flags: int = 0, directory: int = AT_FDCWD):
        address = caller.room(256)
        caller.ok("statx", directory, path, flags, 0x7FF, address)
        fields = caller.unpack("IIQIIIHHQQQQ" + "qII" * 4 + "IIII", address)
        (_, self.blksize, _, self.nlink, self.uid, self.gid, self.mode, _, self.ino,
         self.size, self.blocks, _) = fields[:12]  # fmt: skip
        self.atime, self.atime_ns = fields[12:14]
        self.ctime, self.ctime_ns = fields[18:20]
        self.mtime, self.mtime_ns = fields[21:23]
        self.rdev, self.dev = fields[24:26], fields[26:28]


@pytest.mark.syscalls("statx")
def test_stat_tells_kind_mode_owner_and_size(caller: Caller) -> None:
    caller.make_file(b"f", b"12345", 0o640)
    stat = Statx(caller, b"f")
    assert (stat.mode, stat.nlink, stat.uid, stat.gid, stat.size) == (
        S_IFREG | 0o640, 1, 1000, 1000, 5,
    )  # fmt: skip
    assert Statx(caller, b"/dev/null").rdev == (1, 3)
    assert Statx(caller, b"/proc").dev != stat.dev


@pytest.mark.syscalls("statx")
def test_stat_follows_links_unless_told_not_to(caller: Caller) -> None:
    caller.make_file(b"f", b"12345")
    caller.ok("symlinkat", b"f", AT_FDCWD, b"link")
    assert Statx(caller, b"link").ino == Statx(caller, b"f").ino
    assert Statx(caller, b"link", AT_SYMLINK_NOFOLLOW).mode == S_IFLNK | 0o777


@pytest.mark.syscalls("statx")
def test_an_empty_path_means_the_fd_itself(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    assert Statx(caller, b"", AT_EMPTY_PATH, fd).ino == Statx(caller, b"f").ino
    assert Statx(caller, b"", AT_EMPTY_PATH).ino == Statx(caller, b".").ino
    read_fd, _ = caller.pipe()
    assert Statx(caller, b"", AT_EMPTY_PATH, read_fd).mode & 0o170000 == S_IFIFO
    assert Statx(caller, b"/proc/self/fd/%d" % read_fd).mode & 0o170000 == S_IFIFO
    result = caller.room(256)
    assert caller.errno("statx", AT_FDCWD, b"", 0, 0, result) is Errno.ENOENT
    assert caller.errno("statx", 99, b"", AT_EMPTY_PATH, 0, result) is Errno.EBADF
    assert caller.errno("statx", AT_FDCWD, b"f", 1, 0, result) is Errno.EINVAL
    assert caller.errno("statx", AT_FDCWD, b"f", 0, 0, len(caller.space) - 255) is Errno.EFAULT
    assert caller.errno("statx", AT_FDCWD, len(caller.space), 0, 0, result) is Errno.EFAULT


@pytest.mark.syscalls("faccessat", "faccessat2")
def test_access_by_real_or_effective_ids(caller: Caller) -> None:
    caller.make_file(b"f", b"", 0o400)
    caller.ok("faccessat", AT_FDCWD, b"f", 4)
    assert caller.errno("faccessat", AT_FDCWD, b"f", 2) is Errno.EACCES
    assert caller.errno("faccessat", AT_FDCWD, b"missing", 0) is Errno.ENOENT
    assert caller.errno("faccessat", AT_FDCWD, b"f", 8) is Errno.EINVAL
    caller.ok("faccessat2", AT_FDCWD, b"f", 4, AT_EACCESS)
    fd = caller.open(b"f", O_RDONLY)
    caller.ok("faccessat2", fd, b"", 4, AT_EMPTY_PATH)
    assert caller.errno("faccessat2", fd, b"", 1, AT_EMPTY_PATH) is Errno.EACCES
    assert caller.errno("faccessat2", AT_FDCWD, b"f", 0, 1) is Errno.EINVAL


@pytest.mark.syscalls("faccessat2", "setresuid")
def test_access_of_a_process_with_two_identities(root: Caller) -> None:
    root.make_file(b"f", b"", 0o400)
    root.ok("setresuid", 1000, 0, 0)
    assert root.errno("faccessat2", AT_FDCWD, b"f", 4, 0) is Errno.EACCES
    root.ok("faccessat2", AT_FDCWD, b"f", 4, AT_EACCESS)


@pytest.mark.syscalls("mkdirat", "unlinkat", "umask")
def test_directories_are_made_with_the_umask_and_removed_empty(caller: Caller) -> None:
    assert caller.ok("umask", 0o027) == 0o022
    assert caller.ok("umask", 0o7777027) == 0o027
    caller.ok("mkdirat", AT_FDCWD, b"d", 0o777)
    assert Statx(caller, b"d").mode == S_IFDIR | 0o750
    caller.make_file(b"d/f")
    assert caller.errno("unlinkat", AT_FDCWD, b"d", AT_REMOVEDIR) is Errno.ENOTEMPTY
    assert caller.errno("unlinkat", AT_FDCWD, b"d", 0) is Errno.EISDIR
    assert caller.errno("unlinkat", AT_FDCWD, b"d/f", AT_REMOVEDIR) is Errno.ENOTDIR
    assert caller.errno("unlinkat", AT_FDCWD, b"d/f", 1) is Errno.EINVAL
    caller.ok("unlinkat", AT_FDCWD, b"d/f", 0)
    caller.ok("unlinkat", AT_FDCWD, b"d", AT_REMOVEDIR)
    assert caller.errno("mkdirat", AT_FDCWD, b"/tmp", 0o777) is Errno.EEXIST
    assert caller.errno("mkdirat", AT_FDCWD, b"/root/x", 0o777) is Errno.EACCES


@pytest.mark.syscalls("mknodat")
def test_nodes(caller: Caller, root: Caller) -> None:
    caller.ok("mknodat", AT_FDCWD, b"fifo", S_IFIFO | 0o666, 0)
    assert Statx(caller, b"fifo").mode == S_IFIFO | 0o644
    caller.ok("mknodat", AT_FDCWD, b"file", 0o600, 0)
    assert Statx(caller, b"file").mode == S_IFREG | 0o600
    assert caller.errno("mknodat", AT_FDCWD, b"dev", 0o020666, 0x103) is Errno.EPERM
    root.ok("mknodat", AT_FDCWD, b"dev", 0o020666, 0x103)
    fd = root.open(b"dev", O_RDONLY)
    assert root.read(fd, 10) == b""
    root.ok("mknodat", AT_FDCWD, b"nodev", 0o020666, 0x7FFF_FFFF)
    assert root.errno("openat", AT_FDCWD, b"nodev", O_RDONLY, 0) is Errno.ENXIO


@pytest.mark.syscalls("symlinkat", "readlinkat")
def test_symbolic_links(caller: Caller) -> None:
    caller.ok("symlinkat", b"the/target", AT_FDCWD, b"link")
    buffer = caller.room(100, 0xAA)
    assert caller.ok("readlinkat", AT_FDCWD, b"link", buffer, 100) == 10
    assert caller.get(buffer, 11) == b"the/target\xaa"
    assert caller.ok("readlinkat", AT_FDCWD, b"link", buffer, 3) == 3
    fd = caller.open(b"link", O_PATH | 0o400000)
    assert caller.ok("readlinkat", fd, b"", buffer, 100) == 10
    caller.make_file(b"f")
    assert caller.errno("readlinkat", AT_FDCWD, b"f", buffer, 100) is Errno.EINVAL
    assert caller.errno("readlinkat", AT_FDCWD, b"link", buffer, 0) is Errno.EINVAL
    assert caller.errno("readlinkat", AT_FDCWD, b"link", buffer, 0x8000_0000) is Errno.EINVAL
    assert caller.errno("readlinkat", AT_FDCWD, b"link", len(caller.space), 9) is Errno.EFAULT
    assert caller.errno("symlinkat", b"", AT_FDCWD, b"l2") is Errno.ENOENT
    assert caller.errno("symlinkat", b"x", AT_FDCWD, b"f") is Errno.EEXIST


@pytest.mark.syscalls("linkat")
def test_hard_links(caller: Caller) -> None:
    caller.make_file(b"f", b"content")
    caller.ok("symlinkat", b"f", AT_FDCWD, b"link")
    caller.ok("linkat", AT_FDCWD, b"f", AT_FDCWD, b"g", 0)
    assert Statx(caller, b"g").ino == Statx(caller, b"f").ino
    assert Statx(caller, b"g").nlink == 2
    caller.ok("linkat", AT_FDCWD, b"link", AT_FDCWD, b"to-link", 0)
    assert Statx(caller, b"to-link", AT_SYMLINK_NOFOLLOW).mode == S_IFLNK | 0o777
    caller.ok("linkat", AT_FDCWD, b"link", AT_FDCWD, b"to-file", AT_SYMLINK_FOLLOW)
    assert Statx(caller, b"f").nlink == 3
    fd = caller.open(b"f", O_RDONLY)
    caller.ok("linkat", fd, b"", AT_FDCWD, b"by-fd", AT_EMPTY_PATH)
    assert caller.errno("linkat", AT_FDCWD, b".", AT_FDCWD, b"dir", 0) is Errno.EPERM
    assert caller.errno("linkat", AT_FDCWD, b"f", AT_FDCWD, b"/proc/x", 0) in (
        Errno.EXDEV, Errno.EACCES, Errno.EROFS, Errno.EPERM,
    )  # fmt: skip
    assert caller.errno("linkat", AT_FDCWD, b"f", AT_FDCWD, b"h", 1) is Errno.EINVAL


@pytest.mark.syscalls("renameat2")
def test_renaming(caller: Caller) -> None:
    caller.make_file(b"a", b"a")
    caller.make_file(b"b", b"b")
    caller.ok("renameat2", AT_FDCWD, b"a", AT_FDCWD, b"c", 0)
    assert caller.errno("renameat2", AT_FDCWD, b"a", AT_FDCWD, b"d", 0) is Errno.ENOENT
    assert caller.errno("renameat2", AT_FDCWD, b"b", AT_FDCWD, b"c", 1) is Errno.EEXIST
    caller.ok("renameat2", AT_FDCWD, b"b", AT_FDCWD, b"c", 2)
    assert (caller.content(b"b"), caller.content(b"c")) == (b"a", b"b")
    caller.ok("renameat2", AT_FDCWD, b"b", AT_FDCWD, b"c", 0)
    assert caller.content(b"c") == b"a"
    assert caller.errno("renameat2", AT_FDCWD, b"c", AT_FDCWD, b"d", 8) is Errno.EINVAL
    caller.ok("mkdirat", AT_FDCWD, b"dir", 0o755)
    assert caller.errno("renameat2", AT_FDCWD, b"dir", AT_FDCWD, b"dir/x", 0) is Errno.EINVAL
    assert caller.errno("renameat2", AT_FDCWD, b"c", AT_FDCWD, b"dir", 0) is Errno.EISDIR


@pytest.mark.syscalls("fchmod", "fchmodat", "fchmodat2")
def test_modes(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.ok("fchmod", fd, 0o601)
    assert Statx(caller, b"f").mode == S_IFREG | 0o601
    caller.ok("fchmodat", AT_FDCWD, b"f", 0o77700755)
    assert Statx(caller, b"f").mode == S_IFREG | 0o755
    caller.ok("fchmodat2", fd, b"", 0o600, AT_EMPTY_PATH)
    assert Statx(caller, b"f").mode == S_IFREG | 0o600
    caller.ok("symlinkat", b"f", AT_FDCWD, b"link")
    assert (
        caller.errno("fchmodat2", AT_FDCWD, b"link", 0o600, AT_SYMLINK_NOFOLLOW) is Errno.EOPNOTSUPP
    )
    assert caller.errno("fchmodat2", AT_FDCWD, b"f", 0o600, 1) is Errno.EINVAL
    assert caller.errno("fchmodat", AT_FDCWD, b"/etc/passwd", 0o777) is Errno.EPERM


@pytest.mark.syscalls("fchown", "fchownat")
def test_owners(caller: Caller, root: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.ok("fchown", fd, -1, -1)
    caller.ok("fchown", fd, 1000, 1000)
    assert caller.errno("fchown", fd, 0, -1) is Errno.EPERM
    assert caller.errno("fchownat", AT_FDCWD, b"f", -1, 0, 0) is Errno.EPERM
    root.ok("fchownat", AT_FDCWD, b"f", 0xFFFF_FFFE, -1, 0)
    assert (Statx(root, b"f").uid, Statx(root, b"f").gid) == (0xFFFF_FFFE, 1000)
    root.ok("symlinkat", b"f", AT_FDCWD, b"link")
    root.ok("fchownat", AT_FDCWD, b"link", 7, 8, AT_SYMLINK_NOFOLLOW)
    assert Statx(root, b"link", AT_SYMLINK_NOFOLLOW).uid == 7
    assert Statx(root, b"f").uid == 0xFFFF_FFFE
    assert root.errno("fchownat", AT_FDCWD, b"f", 0, 0, 1) is Errno.EINVAL


@pytest.mark.syscalls("utimensat_time64")
def test_a_time_set_to_the_present_is_the_moment_of_the_change(caller: Caller) -> None:
    caller.open(b"f", O_RDWR | O_CREAT)
    caller.ok("utimensat_time64", AT_FDCWD, b"f", 0, 0)
    stat = Statx(caller, b"f")
    changed = (stat.ctime, stat.ctime_ns)
    assert (stat.atime, stat.atime_ns) == (stat.mtime, stat.mtime_ns) == changed
    only_access = caller.pack("qqqq", 0, UTIME_NOW, 0, UTIME_OMIT)
    caller.ok("utimensat_time64", AT_FDCWD, b"f", only_access, 0)
    stat = Statx(caller, b"f")
    assert (stat.atime, stat.atime_ns) == (stat.ctime, stat.ctime_ns) > changed


@pytest.mark.syscalls("utimensat_time64")
def test_times(caller: Caller, root: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    times = caller.pack("qqqq", 100, 5, -7, 999_999_999)
    caller.ok("utimensat_time64", AT_FDCWD, b"f", times, 0)
    stat = Statx(caller, b"f")
    assert (stat.atime, stat.atime_ns, stat.mtime, stat.mtime_ns) == (100, 5, -7, 999_999_999)
    # Only the lower half of a nanosecond field counts.
    caller.ok("utimensat_time64", fd, 0, caller.pack("qqqq", 1, 2 | 7 << 32, 0, UTIME_OMIT), 0)
    stat = Statx(caller, b"f")
    assert (stat.atime, stat.atime_ns, stat.mtime) == (1, 2, -7)
    caller.ok("utimensat_time64", AT_FDCWD, b"f", caller.pack("qqqq", 0, UTIME_NOW, 0, 0), 0)
    assert (Statx(caller, b"f").atime > 1_600_000_000, Statx(caller, b"f").mtime) == (True, 0)
    caller.ok("utimensat_time64", AT_FDCWD, b"f", 0, 0)
    assert Statx(caller, b"f").mtime > 1_600_000_000
    omit = caller.pack("qqqq", 0, UTIME_OMIT, 0, UTIME_OMIT)
    caller.ok("utimensat_time64", AT_FDCWD, b"/etc/passwd", omit, 0)
    assert caller.errno("utimensat_time64", AT_FDCWD, b"/etc/passwd", times, 0) is Errno.EPERM
    assert caller.errno("utimensat_time64", AT_FDCWD, b"/etc/passwd", 0, 0) is Errno.EACCES
    bad = caller.pack("qqqq", 0, 1_000_000_000, 0, 0)
    assert caller.errno("utimensat_time64", AT_FDCWD, b"f", bad, 0) is Errno.EINVAL
    assert caller.errno("utimensat_time64", AT_FDCWD, b"f", 0, 1) is Errno.EINVAL
    assert caller.errno("utimensat_time64", 99, 0, 0, 0) is Errno.EBADF


@pytest.mark.syscalls("statfs64", "fstatfs64")
def test_file_systems(caller: Caller) -> None:
    address, again = caller.room(88), caller.room(88)
    caller.ok("statfs64", b"/tmp", 88, address)
    kind, bsize, blocks, free, available, files, files_free = caller.unpack("II5Q", address)
    assert (kind, bsize * blocks) == (0x01021994, 256 << 20)
    assert 0 < free == available <= blocks
    assert 0 < files_free <= files
    caller.ok("fstatfs64", caller.open(b".", O_RDONLY), 88, again)
    assert caller.get(again, 88) == caller.get(address, 88)
    caller.ok("statfs64", b"/proc", 88, address)
    assert caller.unpack("I", address) == (0x9FA0,)
    caller.ok("fstatfs64", caller.pipe()[0], 88, address)
    assert caller.errno("statfs64", b"missing", 88, address) is Errno.ENOENT
    assert caller.errno("statfs64", b"/", 88, len(caller.space) - 87) is Errno.EFAULT


@pytest.mark.syscalls("getcwd", "chdir", "fchdir")
def test_the_working_directory(caller: Caller) -> None:
    caller.ok("mkdirat", AT_FDCWD, b"d", 0o755)
    buffer = caller.room(20, 0xAA)
    caller.ok("chdir", b"d")
    assert caller.ok("getcwd", buffer, 20) == 7
    assert caller.get(buffer, 8) == b"/tmp/d\0\xaa"
    assert caller.errno("getcwd", buffer, 6) is Errno.ERANGE
    assert caller.errno("getcwd", len(caller.space) - 6, 20) is Errno.EFAULT
    fd = caller.open(b"..", O_RDONLY | O_DIRECTORY)
    caller.ok("fchdir", fd)
    caller.ok("getcwd", buffer, 20)
    assert caller.get(buffer, 5) == b"/tmp\0"
    caller.make_file(b"f")
    assert caller.errno("chdir", b"f") is Errno.ENOTDIR
    assert caller.errno("chdir", b"missing") is Errno.ENOENT
    assert caller.errno("chdir", b"/root") is Errno.EACCES
    assert caller.errno("fchdir", caller.open(b"f", O_RDONLY)) is Errno.ENOTDIR
    assert caller.errno("fchdir", caller.pipe()[0]) is Errno.ENOTDIR
    assert caller.errno("fchdir", 99) is Errno.EBADF


def test_a_removed_working_directory_has_no_name(caller: Caller) -> None:
    caller.ok("mkdirat", AT_FDCWD, b"d", 0o755)
    caller.ok("chdir", b"d")
    caller.ok("unlinkat", AT_FDCWD, b"/tmp/d", AT_REMOVEDIR)
    assert caller.errno("getcwd", caller.room(100), 100) is Errno.ENOENT
    assert caller.errno("openat", AT_FDCWD, b"f", O_CREAT, 0o644) is Errno.ENOENT
    caller.ok("chdir", b"/tmp")


@pytest.mark.syscalls("chroot")
def test_nobody_changes_the_root(caller: Caller, root: Caller) -> None:
    for process in (caller, root):
        assert process.errno("chroot", b"/tmp") is Errno.EPERM
