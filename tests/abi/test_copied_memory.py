"""No call needs a view of the guest's memory: an engine may offer only copies.

Each scenario runs twice, by a process whose memory the host can view and by one whose memory it
can only copy. Results and memory must be the same. Clock and random numbers are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.abi.caller import AT_FDCWD, Caller, CopyingInstance, PythonInstance, Sandbox
from wasmsand.abi.memory import CopiedMemory, ViewedMemory
from wasmsand.abi.wasi.table import FUNCTIONS
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import O_CREAT, O_RDWR
from wasmsand.kernel.process.signals import Signal

WASI = {row.name: row.handler for row in FUNCTIONS}
WORKING_DIRECTORY = 3
"""The descriptor that a WASI program has for it."""
RIGHTS = (1 << 29) - 1
NOW_NS = 1_000_000_000_000_000_000
LARGE = 100_000
Results = list[object]


@contextmanager
def process(kind: type[PythonInstance]) -> Iterator[Caller]:
    sandbox = Sandbox(kind=kind, clock=Clock(lambda: NOW_NS, lambda: NOW_NS))
    sandbox.kernel.random = lambda size: bytes(index % 256 for index in range(size))
    yield sandbox.process(argv=(b"prog", b"arg"))
    with sandbox.lock:
        sandbox.kernel.kill_all()


def invoke(caller: Caller, name: str, *arguments: int) -> int:
    """Call a WASI function; returns its errno."""
    return caller.driver.invoke(WASI[name], *(word & 0xFFFF_FFFF_FFFF_FFFF for word in arguments))


def files(caller: Caller) -> Results:
    fd = caller.open(b"file", O_RDWR | O_CREAT)
    large = caller.put(bytes(range(256)) * (LARGE // 256))
    return [
        caller.call("write", fd, large, LARGE),
        caller.call("pwrite64", fd, caller.put(b"middle"), 6, 50, 0),
        caller.call("pread64", fd, caller.room(100), 100, 40, 0),
        caller.call("_llseek", fd, 0, 0, caller.room(8), 0),
        caller.call("read", fd, caller.room(LARGE), LARGE),
        caller.call("linkat", AT_FDCWD, b"file", AT_FDCWD, b"twin", 0),
        caller.call("symlinkat", b"file", AT_FDCWD, b"link"),
        caller.call("readlinkat", AT_FDCWD, b"link", caller.room(10), 10),
        caller.call("statx", AT_FDCWD, b"file", 0, 0x7FF, caller.room(256)),
        caller.call("getcwd", caller.room(64), 64),
        caller.call("openat", AT_FDCWD, b"x" * 4095, 0),
        caller.call("openat", AT_FDCWD, b"x" * 4096, 0),
    ]


def directories(caller: Caller) -> Results:
    for name in (b"a", b"b", b"c" * 200):
        caller.make_file(name)
    fd = caller.open(b".", 0)
    return [caller.call("getdents64", fd, caller.room(4096), 4096) for _ in range(2)]


def vectors(caller: Caller) -> Results:
    fd = caller.open(b"file", O_RDWR | O_CREAT)
    out = caller.vectors((caller.put(b"ab"), 2), (0, 0), (caller.put(b"cde"), 3))
    into = caller.vectors((caller.room(4), 4), (caller.room(4), 4))
    return [
        caller.call("writev", fd, out, 3),
        caller.call("_llseek", fd, 0, 0, caller.room(8), 0),
        caller.call("readv", fd, into, 2),
        caller.call("writev", fd, caller.vectors((0xFFFF_FFFF, 5)), 1),
    ]


def pipes_and_polls(caller: Caller) -> Results:
    read_fd, write_fd = caller.pipe()
    polled = caller.pack("iHHiHH", read_fd, 1, 0, write_fd, 4, 0)
    return [
        caller.call("write", write_fd, caller.put(b"hello"), 5),
        caller.call("ppoll_time64", polled, 2, 0, 0),
        caller.call("read", read_fd, caller.room(16), 16),
        caller.call("ioctl", read_fd, 0x541B, caller.room(4)),  # FIONREAD
    ]


def messages(caller: Caller) -> Results:
    pair = caller.room(8)
    caller.ok("socketpair", 1, 1, 0, pair)
    one, two = caller.unpack("II", pair)
    data = caller.vectors((caller.put(b"mess"), 4), (caller.put(b"age"), 3))
    room = caller.vectors((caller.room(4), 4), (caller.room(4), 4))
    control = caller.pack("Iii1i", 16, 1, 1, one)  # SCM_RIGHTS
    return [
        caller.call("sendmsg", one, caller.pack("7I", 0, 0, data, 2, control, 16, 0), 0),
        caller.call("recvmsg", two, caller.pack("7I", 0, 0, room, 2, caller.room(16), 16, 0), 0),
    ]


def signals(caller: Caller) -> Results:
    caller.handle(Signal.SIGUSR1, flags=4)
    caller.ok("kill", caller.process.pid, Signal.SIGUSR1)
    return [caller.signal_flag, caller.take_signal(), caller.take_signal(), caller.signal_flag]


def processes(caller: Caller) -> Results:
    child = caller.fork()
    child.exit(3)
    results = [
        caller.call("wait4", -1, caller.room(4), 0, caller.room(128)),
        caller.call("uname", caller.room(390)),
        caller.call("clock_gettime64", 0, caller.room(16)),
        caller.call("getrandom", caller.room(32), 32, 0),
        caller.call("prlimit64", 0, 7, 0, caller.room(16)),
    ]
    strings = caller.strings(b"prog", b"x" * 3000), caller.strings(b"E=1")
    results.append(caller.call("execve", b"/bin/prog", *strings))
    size = caller.ok("startup_size")
    return [*results, size, caller.call("startup_fill", caller.room(size), size)]


def threads(caller: Caller) -> Results:
    flags = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x100000 | 0x1000000
    tid = caller.room(4)
    word = caller.pack("I", 5)
    return [
        caller.call("clone", flags, caller.room(64) & ~15, tid, 0, tid) > 0,
        caller.call("futex_time64", word, 0, 6, 0),  # it is not 6
        caller.call("futex_time64", word, 1, 1, 0),
    ]


def bad_pointers(caller: Caller) -> Results:
    end = len(caller.space)
    fd = caller.open(b"file", O_RDWR | O_CREAT)
    calls: list[tuple[str, tuple[int | bytes, ...]]] = [
        ("write", (fd, end - 3, 4)),
        ("read", (fd, end, 1)),
        ("openat", (AT_FDCWD, end - 1, 0)),
        ("openat", (AT_FDCWD, 0xFFFF_FFFF, 0)),
        ("uname", (end - 8,)),
        ("pipe2", (end - 4, 0)),
        ("readv", (fd, end - 4, 1)),
    ]
    caller.space[end - 1] = ord("x")
    return [caller.errno(name, *arguments) is Errno.EFAULT for name, arguments in calls]


def wasi_files(caller: Caller) -> Results:
    path, opened, counted = caller.put(b"file"), caller.room(4), caller.room(4)
    results: Results = [
        invoke(caller, "path_open", WORKING_DIRECTORY, 0, path, 4, 1, RIGHTS, RIGHTS, 0, opened)
    ]
    (fd,) = caller.unpack("I", opened)
    out = caller.vectors((caller.put(b"ab"), 2), (caller.put(b"cde"), 3))
    into = caller.vectors((caller.room(4), 4), (caller.room(4), 4))
    one = caller.vectors((caller.room(8), 8))
    return [
        *results,
        invoke(caller, "fd_write", fd, out, 2, counted),
        invoke(caller, "fd_write", fd, out, 1, counted),
        invoke(caller, "fd_seek", fd, 0, 0, caller.room(8)),
        invoke(caller, "fd_read", fd, into, 2, counted),
        invoke(caller, "fd_read", fd, one, 1, counted),
        invoke(caller, "fd_pwrite", fd, out, 2, 3, counted),
        invoke(caller, "fd_pread", fd, into, 2, 1, counted),
        invoke(caller, "fd_filestat_get", fd, caller.room(64)),
        invoke(caller, "fd_fdstat_get", fd, caller.room(24)),
        invoke(caller, "path_filestat_get", WORKING_DIRECTORY, 1, path, 4, caller.room(64)),
        invoke(caller, "fd_readdir", WORKING_DIRECTORY, caller.room(512), 512, 0, counted),
        invoke(caller, "path_unlink_file", WORKING_DIRECTORY, path, 4),
        invoke(caller, "fd_write", fd, len(caller.space) - 4, 1, counted),
        invoke(caller, "fd_read", fd, one, 1, len(caller.space) - 3),
    ]


def wasi_start(caller: Caller) -> Results:
    words, text = caller.room(64), caller.room(256)
    poll = caller.pack("QB7xIIQQHHI", 7, 0, 1, 0, 0, 0, 1, 0, 0)  # a clock that has expired
    return [
        invoke(caller, "args_sizes_get", words, words + 4),
        invoke(caller, "args_get", words + 8, text),
        invoke(caller, "environ_sizes_get", words + 32, words + 36),
        invoke(caller, "environ_get", words + 40, text + 128),
        invoke(caller, "fd_prestat_get", WORKING_DIRECTORY, caller.room(8)),
        invoke(caller, "fd_prestat_dir_name", WORKING_DIRECTORY, caller.room(1), 1),
        invoke(caller, "clock_time_get", 0, 1, caller.room(8)),
        invoke(caller, "random_get", caller.room(32), 32),
        invoke(caller, "poll_oneoff", poll, caller.room(32), 1, caller.room(4)),
    ]


SCENARIOS: list[Callable[[Caller], Results]] = [
    files, directories, vectors, pipes_and_polls, messages, signals, processes, threads,
    bad_pointers, wasi_files, wasi_start,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_calls_give_the_same_results_with_copies_as_with_a_view(
    scenario: Callable[[Caller], Results],
) -> None:
    with process(PythonInstance) as viewed, process(CopyingInstance) as copied:
        assert (type(viewed.memory), type(copied.memory)) == (ViewedMemory, CopiedMemory)
        expected, found = scenario(viewed), scenario(copied)
        assert type(copied.memory) is CopiedMemory  # after exec too
        assert found == expected
        assert copied.space == viewed.space
        failed = [value for value in expected if type(value) is int and value < 0]
        assert len(failed) <= 2, expected  # most of the compared results are successes
