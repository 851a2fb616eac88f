"""open, close, dup, pipe, fcntl, getdents."""

from __future__ import annotations

import pytest

from tests.abi.caller import AT_FDCWD, Caller, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import (
    F_DUPFD,
    F_DUPFD_CLOEXEC,
    F_GETFD,
    F_GETFL,
    F_GETLK64,
    F_GETPIPE_SZ,
    F_SETFD,
    F_SETFL,
    F_SETLK64,
    F_SETPIPE_SZ,
    FD_CLOEXEC,
    O_APPEND,
    O_CLOEXEC,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_LARGEFILE,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    O_TMPFILE_BIT,
    O_TRUNC,
    O_WRONLY,
)
from wasmsand.kernel.limits import Limits


@pytest.mark.syscalls("openat", "close", "read", "write")
def test_a_file_is_created_written_and_read_back(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT | O_EXCL)
    assert fd == 0
    assert caller.write(fd, b"content") == 7
    caller.ok("close", fd)
    assert caller.content(b"/tmp/f") == b"content"
    assert caller.errno("close", fd) is Errno.EBADF
    assert caller.errno("read", fd, 0, 0) is Errno.EBADF


@pytest.mark.parametrize(
    ("path", "flags", "errno"),
    [
        (b"missing", O_RDONLY, Errno.ENOENT),
        (b"", O_RDONLY, Errno.ENOENT),
        (b"f", O_CREAT | O_EXCL, Errno.EEXIST),
        (b"f", O_DIRECTORY, Errno.ENOTDIR),
        (b"f/x", O_RDONLY, Errno.ENOTDIR),
        (b"/tmp", O_WRONLY, Errno.EISDIR),
        (b"link", O_NOFOLLOW, Errno.ELOOP),
        (b"/root/x", O_RDONLY, Errno.EACCES),
        (b"/etc/passwd", O_WRONLY, Errno.EACCES),
        (b"x" * 256, O_CREAT, Errno.ENAMETOOLONG),
        (b"x/" * 2048, O_RDONLY, Errno.ENAMETOOLONG),
    ],
)
@pytest.mark.syscalls("openat")
def test_invalid_opens_are_refused(caller: Caller, path: bytes, flags: int, errno: Errno) -> None:
    caller.make_file(b"f")
    caller.ok("symlinkat", b"f", AT_FDCWD, b"link")
    assert caller.errno("openat", AT_FDCWD, path, flags, 0) is errno


@pytest.mark.syscalls("openat")
def test_relative_paths_start_at_the_directory_fd(caller: Caller) -> None:
    caller.ok("mkdirat", AT_FDCWD, b"d", 0o755)
    caller.make_file(b"d/f", b"inside")
    directory = caller.open(b"d", O_RDONLY | O_DIRECTORY)
    fd = caller.ok("openat", directory, b"f", O_RDONLY, 0)
    assert caller.read(fd) == b"inside"
    assert caller.errno("openat", fd, b"f", O_RDONLY, 0) is Errno.ENOTDIR
    assert caller.errno("openat", 99, b"f", O_RDONLY, 0) is Errno.EBADF
    caller.ok("openat", 99, b"/tmp/d/f", O_RDONLY, 0)


@pytest.mark.syscalls("openat")
def test_append_writes_at_the_end_and_truncate_empties_the_file(caller: Caller) -> None:
    caller.make_file(b"f", b"old")
    fd = caller.open(b"f", O_WRONLY | O_APPEND)
    caller.ok("_llseek", fd, 0, 0, caller.room(8), 0)
    caller.write(fd, b"+new")
    assert caller.content(b"f") == b"old+new"
    caller.open(b"f", O_WRONLY | O_TRUNC)
    assert caller.content(b"f") == b""


def test_a_failed_open_for_lack_of_fds_creates_and_truncates_nothing() -> None:
    caller = Sandbox(Limits(max_open_files=2)).process()
    caller.make_file(b"kept", b"kept")
    caller.pipe()
    assert caller.errno("openat", AT_FDCWD, b"new", O_CREAT | O_WRONLY, 0o644) is Errno.EMFILE
    assert caller.errno("openat", AT_FDCWD, b"kept", O_TRUNC | O_WRONLY, 0) is Errno.EMFILE
    assert caller.errno("pipe2", caller.room(8), 0) is Errno.EMFILE
    assert caller.errno("dup", 0) is Errno.EMFILE
    caller.ok("close", 0)
    assert caller.errno("pipe2", caller.room(8), 0) is Errno.EMFILE
    assert caller.errno("faccessat", AT_FDCWD, b"new", 0) is Errno.ENOENT
    assert caller.content(b"kept") == b"kept"


def test_a_path_only_fd_names_a_file_but_does_not_open_it(caller: Caller) -> None:
    caller.make_file(b"f", b"x", 0o000)
    fd = caller.open(b"f", O_PATH)
    for name, *arguments in (
        ("read", 0, 0), ("write", 0, 0), ("ioctl", 0x541B, 0), ("fchmod", 0o777),
        ("fchown", 1000, 1000), ("fsync",), ("getdents64", 0, 0), ("flock", 1),
        ("_llseek", 0, 0, 0, 0), ("ftruncate64", 0, 0), ("fcntl64", F_SETFL, 0),
    ):  # fmt: skip
        assert caller.errno(name, fd, *arguments) is Errno.EBADF, name
    assert caller.ok("fcntl64", caller.ok("dup", fd), F_GETFL) & O_PATH
    caller.ok("statx", fd, b"", 0x1000, 0x7FF, caller.room(256))
    poll = caller.pack("ihh", fd, 1, 0)
    assert caller.ok("ppoll_time64", poll, 1, 0, 0, 8) == 1
    assert caller.unpack("ihh", poll)[2] == 0x20


def test_an_access_mode_of_three_opens_for_neither(caller: Caller) -> None:
    caller.make_file(b"f", b"x")
    fd = caller.open(b"f", 3)
    assert caller.errno("read", fd, caller.room(1), 1) is Errno.EBADF
    assert caller.errno("write", fd, caller.room(1), 1) is Errno.EBADF


@pytest.mark.syscalls("dup", "dup3")
def test_dup_shares_the_file_and_not_the_close_on_exec_flag(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT | O_CLOEXEC)
    copy = caller.ok("dup", fd)
    assert caller.ok("fcntl64", fd, F_GETFD) == FD_CLOEXEC
    assert caller.ok("fcntl64", copy, F_GETFD) == 0
    assert caller.ok("dup3", fd, 50, O_CLOEXEC) == 50
    assert caller.ok("fcntl64", 50, F_GETFD) == FD_CLOEXEC
    caller.write(fd, b"abc")
    caller.write(50, b"def")
    assert caller.content(b"f") == b"abcdef"
    assert caller.errno("dup3", fd, fd, 0) is Errno.EINVAL
    assert caller.errno("dup3", fd, 51, 1) is Errno.EINVAL
    assert caller.errno("dup3", fd, 1 << 20, 0) is Errno.EBADF
    assert caller.errno("dup3", 99, 51, 0) is Errno.EBADF
    assert caller.errno("dup", 99) is Errno.EBADF


@pytest.mark.syscalls("pipe2")
def test_pipe2_sets_its_flags_and_refuses_others(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe(O_CLOEXEC | O_NONBLOCK)
    assert caller.ok("fcntl64", read_fd, F_GETFD) == FD_CLOEXEC
    assert caller.ok("fcntl64", write_fd, F_GETFL) & 0o7777 == O_NONBLOCK | O_WRONLY
    assert caller.errno("read", read_fd, caller.room(1), 1) is Errno.EAGAIN
    assert caller.errno("pipe2", caller.room(8), O_APPEND) is Errno.EINVAL
    assert caller.errno("pipe2", len(caller.space) - 4, 0) is Errno.EFAULT
    assert len(caller.process.fds) == 2


@pytest.mark.syscalls("fcntl64")
def test_fcntl_flags_and_duplicates(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    assert caller.ok("fcntl64", fd, F_GETFL) == O_RDWR | O_LARGEFILE
    caller.ok("fcntl64", fd, F_SETFL, O_APPEND | O_NONBLOCK | O_WRONLY | O_CREAT)
    assert caller.ok("fcntl64", fd, F_GETFL) == O_RDWR | O_LARGEFILE | O_APPEND | O_NONBLOCK
    caller.ok("fcntl64", fd, F_SETFD, FD_CLOEXEC)
    assert caller.ok("fcntl64", fd, F_GETFD) == FD_CLOEXEC
    assert caller.ok("fcntl64", fd, F_DUPFD, 10) == 10
    assert caller.ok("fcntl64", fd, F_DUPFD_CLOEXEC, 10) == 11
    assert caller.ok("fcntl64", 11, F_GETFD) == FD_CLOEXEC
    assert caller.errno("fcntl64", fd, F_DUPFD, 1 << 20) is Errno.EINVAL
    assert caller.errno("fcntl64", fd, 9999, 0) is Errno.EINVAL
    assert caller.errno("fcntl64", 99, F_GETFD) is Errno.EBADF


def test_a_pipe_can_be_made_smaller_and_as_large_as_it_was(caller: Caller) -> None:
    fd, writer = caller.pipe()
    assert caller.ok("fcntl64", fd, F_GETPIPE_SZ) == 65536
    assert caller.ok("fcntl64", fd, F_SETPIPE_SZ, 5000) == 8192
    assert caller.ok("fcntl64", fd, F_GETPIPE_SZ) == 8192
    assert caller.ok("fcntl64", fd, F_SETPIPE_SZ, 0) == 4096
    assert caller.ok("fcntl64", fd, F_SETPIPE_SZ, 65536) == 65536
    assert caller.errno("fcntl64", fd, F_SETPIPE_SZ, 1 << 20) is Errno.EPERM
    caller.write(writer, bytes(5000))
    assert caller.errno("fcntl64", fd, F_SETPIPE_SZ, 4096) is Errno.EBUSY
    file = caller.open(b"f", O_CREAT)
    assert caller.errno("fcntl64", file, F_GETPIPE_SZ) is Errno.EBADF


@pytest.mark.syscalls("fcntl64")
def test_record_locks_exclude_other_processes(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    child = caller.fork()
    lock = caller.pack("hh4xqqi4x", 1, 0, 10, 5, 0)
    caller.ok("fcntl64", fd, F_SETLK64, lock)
    asked = child.pack("hh4xqqi4x", 0, 0, 0, 0, 0)
    assert child.errno("fcntl64", fd, F_SETLK64, asked) is Errno.EAGAIN
    child.ok("fcntl64", fd, F_GETLK64, asked)
    assert child.unpack("hh4xqqi4x", asked) == (1, 0, 10, 5, caller.process.pid)
    second = caller.ok("dup", fd)
    caller.ok("close", second)
    child.ok("fcntl64", fd, F_SETLK64, child.pack("hh4xqqi4x", 0, 0, 0, 0, 0))


def test_a_waiting_lock_request_is_granted_when_the_holder_exits(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    child = caller.fork()
    child.ok("fcntl64", fd, F_SETLK64, child.pack("hh4xqqi4x", 1, 0, 0, 0, 0))
    waiting = caller.begin("fcntl64", fd, 14, caller.pack("hh4xqqi4x", 1, 0, 0, 0, 0))
    assert waiting.is_blocked()
    child.exit()
    assert waiting.result() == 0


@pytest.mark.parametrize(
    ("kind", "whence", "start", "length", "errno"),
    [
        (9, 0, 0, 0, Errno.EINVAL),
        (1, 7, 0, 0, Errno.EINVAL),
        (1, 0, -1, 0, Errno.EINVAL),
        (1, 0, 0, -1, Errno.EINVAL),
        (0, 0, 0, 0, Errno.EBADF),
    ],
)
def test_invalid_record_locks_are_refused(
    caller: Caller, kind: int, whence: int, start: int, length: int, errno: Errno
) -> None:
    fd = caller.open(b"f", O_WRONLY | O_CREAT)
    lock = caller.pack("hh4xqqi4x", kind, whence, start, length, 0)
    assert caller.errno("fcntl64", fd, F_SETLK64, lock) is errno


@pytest.mark.syscalls("flock")
def test_flock_keeps_another_description_out(caller: Caller) -> None:
    first, second = caller.open(b"f", O_RDWR | O_CREAT), caller.open(b"f", O_RDWR)
    caller.ok("flock", first, 2)
    assert caller.errno("flock", second, 2 | 4) is Errno.EAGAIN
    child = caller.fork()
    waiting = child.begin("flock", second, 1)
    assert waiting.is_blocked()
    caller.ok("close", first)
    assert waiting.is_blocked(), "the child still has the description open"
    child.process.fds.close(first)
    assert waiting.result() == 0
    read_fd, _ = caller.pipe()
    assert caller.errno("flock", read_fd, 1) is Errno.EBADF


@pytest.mark.syscalls("close_range")
def test_close_range(caller: Caller) -> None:
    for _ in range(5):
        caller.open(b"/dev/null", O_RDWR)
    caller.ok("close_range", 1, 2, 0)
    assert list(caller.process.fds) == [0, 3, 4]
    caller.ok("close_range", 4, 0xFFFF_FFFF, 4)
    assert caller.ok("fcntl64", 4, F_GETFD) == FD_CLOEXEC
    caller.ok("close_range", 3, 0xFFFF_FFFF, 0)
    assert list(caller.process.fds) == [0]
    assert caller.errno("close_range", 2, 1, 0) is Errno.EINVAL
    assert caller.errno("close_range", 1, 2, 1) is Errno.EINVAL


@pytest.mark.syscalls("getdents64")
def test_directory_entries_come_in_parts_that_fit(caller: Caller) -> None:
    caller.ok("mkdirat", AT_FDCWD, b"d", 0o755)
    names = {b".", b".."} | {b"file%02d" % i for i in range(30)}
    for i in range(30):
        caller.make_file(b"d/file%02d" % i)
    fd = caller.open(b"d", O_RDONLY | O_DIRECTORY)
    found = []
    while size := caller.ok("getdents64", fd, address := caller.room(100, 0xAA), 100):
        assert caller.space[address + 100] != 0xAA or size <= 100
        data = caller.get(address, size)
        while data:
            length = int.from_bytes(data[16:18], "little")
            assert length % 8 == 0
            found.append(data[19:length].split(b"\0")[0])
            data = data[length:]
    assert sorted(found) == sorted(names)
    caller.ok("_llseek", fd, 0, 0, caller.room(8), 0)
    assert caller.errno("getdents64", fd, caller.room(10), 10) is Errno.EINVAL
    assert caller.errno("getdents64", fd, len(caller.space) - 10, 100) is Errno.EFAULT
    file = caller.open(b"d/file00", O_RDONLY)
    assert caller.errno("getdents64", file, caller.room(100), 100) is Errno.ENOTDIR


@pytest.mark.syscalls("getdents64")
def test_only_the_last_entry_of_a_directory_says_that_nothing_follows(caller: Caller) -> None:
    caller.ok("mkdirat", AT_FDCWD, b"d", 0o755)
    for i in range(30):
        caller.make_file(b"d/file%02d" % i)
    for room in (4096, 1000, 100):
        fd = caller.open(b"d", O_RDONLY | O_DIRECTORY)
        positions = []
        while size := caller.ok("getdents64", fd, address := caller.room(room), room):
            data = caller.get(address, size)
            while data:
                positions.append(int.from_bytes(data[8:16], "little"))
                data = data[int.from_bytes(data[16:18], "little") :]
        assert len(positions) == 32
        assert 0x7FFF_FFFF not in positions[:-1]
        # With little room, the kernel may learn only from the next call that it was the last.
        assert positions[-1] == 0x7FFF_FFFF or room == 100
        result = caller.room(8)
        caller.ok("_llseek", fd, 0, 0x7FFF_FFFF, result, 0)
        assert caller.ok("getdents64", fd, caller.room(room), room) == 0
        caller.ok("_llseek", fd, 0, positions[3], result, 0)
        assert caller.ok("getdents64", fd, caller.room(room), room) > 0


@pytest.mark.syscalls("openat", "memfd_create")
def test_files_without_a_name_live_as_long_as_their_descriptors(
    sandbox: Sandbox, caller: Caller
) -> None:
    inodes = sandbox.kernel.root.statfs().files_free
    unnamed = caller.open(b"/tmp", O_RDWR | O_DIRECTORY | O_TMPFILE_BIT)
    memory = caller.ok("memfd_create", b"name", 1)
    for fd in (unnamed, memory):
        caller.write(fd, b"kept")
        caller.ok("_llseek", fd, 0, 0, caller.room(8), 0)
        assert caller.read(fd) == b"kept"
    assert sandbox.kernel.root.statfs().files_free == inodes - 2
    assert caller.ok("fcntl64", memory, 1, 0) == 1
    for fd in (unnamed, memory):
        caller.ok("close", fd)
    assert sandbox.kernel.root.statfs().files_free == inodes
    assert caller.errno("openat", -100, b"/tmp", O_DIRECTORY | O_TMPFILE_BIT, 0) is Errno.EINVAL
    assert caller.errno("openat", -100, b"/etc", O_RDWR | O_DIRECTORY | O_TMPFILE_BIT, 0) is (
        Errno.EACCES
    )
    assert caller.errno("memfd_create", b"x" * 250, 0) is Errno.EINVAL
    assert caller.errno("memfd_create", b"x", 0x100) is Errno.EINVAL
