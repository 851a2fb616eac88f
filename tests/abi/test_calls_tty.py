"""ioctl: terminals, and the few requests that files have in common."""

from __future__ import annotations

import time

import pytest

from tests.abi.caller import AT_FDCWD, Caller
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.line_discipline import ECHO, ICANON, TOSTOP, VMIN, VTIME
from wasmsand.kernel.flags import (
    F_GETFD,
    F_GETFL,
    FD_CLOEXEC,
    O_CREAT,
    O_NOCTTY,
    O_NONBLOCK,
    O_RDWR,
)
from wasmsand.kernel.process.signals import Signal

TCGETS, TCSETS, TCSETSW, TCSETSF = range(0x5401, 0x5405)
TCXONC, TCFLSH, TIOCSCTTY, TIOCGPGRP, TIOCSPGRP = 0x540A, 0x540B, 0x540E, 0x540F, 0x5410
TIOCOUTQ, TIOCGWINSZ, TIOCSWINSZ = 0x5411, 0x5413, 0x5414
FIONREAD, FIONBIO, TIOCNOTTY, TIOCGSID = 0x541B, 0x5421, 0x5422, 0x5429
FIONCLEX, FIOCLEX, TIOCGPTN, TIOCSPTLCK = 0x5450, 0x5451, 0x80045430, 0x40045431
SETTINGS = "4IB19s"


class Console:
    """A process with a controlling terminal: `master` and `slave` are its fds."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.master = caller.open(b"/dev/ptmx", O_RDWR | O_NOCTTY)
        self.slave = caller.open(b"/dev/pts/0", O_RDWR)

    def word(self, request: int, fd: int | None = None) -> int:
        address = self.caller.room(4)
        self.caller.ok("ioctl", self.slave if fd is None else fd, request, address)
        value: int = self.caller.unpack("I", address)[0]
        return value

    def change(
        self, off: int = 0, on: int = 0, control: dict[int, int] | None = None, how: int = TCSETS
    ) -> None:
        """tcsetattr of local flags and control characters."""
        caller, address = self.caller, self.caller.room(60)
        caller.ok("ioctl", self.slave, TCGETS, address)
        iflag, oflag, cflag, lflag, line, cc = caller.unpack(SETTINGS, address)
        characters = bytearray(cc)
        for index, value in (control or {}).items():
            characters[index] = value
        new = caller.pack(SETTINGS, iflag, oflag, cflag, lflag & ~off | on, line, bytes(characters))
        caller.ok("ioctl", self.slave, how, new)


@pytest.fixture
def console(caller: Caller) -> Console:
    return Console(caller)


@pytest.mark.syscalls("ioctl")
def test_every_file_accepts_the_common_ioctls(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.ok("ioctl", fd, FIOCLEX, 0)
    assert caller.ok("fcntl64", fd, F_GETFD) == FD_CLOEXEC
    caller.ok("ioctl", fd, FIONCLEX, 0)
    assert caller.ok("fcntl64", fd, F_GETFD) == 0
    caller.ok("ioctl", fd, FIONBIO, caller.pack("I", 1))
    assert caller.ok("fcntl64", fd, F_GETFL) & O_NONBLOCK
    caller.ok("ioctl", fd, FIONBIO, caller.pack("I", 0))
    assert not caller.ok("fcntl64", fd, F_GETFL) & O_NONBLOCK
    caller.write(fd, b"12345")
    caller.ok("_llseek", fd, 0, 2, caller.room(8), 0)
    count = caller.room(4)
    caller.ok("ioctl", fd, FIONREAD, count)
    assert caller.unpack("I", count) == (3,)
    read_fd, write_fd = caller.pipe()
    caller.write(write_fd, b"1234567")
    caller.ok("ioctl", read_fd, FIONREAD, count)
    assert caller.unpack("I", count) == (7,)
    for request in (TIOCGWINSZ, TCGETS, 0, 0xFFFF_FFFF):
        assert caller.errno("ioctl", fd, request, count) is Errno.ENOTTY
    assert caller.errno("ioctl", 99, FIOCLEX, 0) is Errno.EBADF
    assert caller.errno("ioctl", fd, FIONREAD, len(caller.space) - 3) is Errno.EFAULT


@pytest.mark.syscalls("ioctl")
def test_settings_and_window_size(console: Console) -> None:
    caller = console.caller
    address = caller.room(60, 0xAA)
    caller.ok("ioctl", console.slave, TCGETS, address)
    assert caller.unpack(SETTINGS, address)[3] & ICANON
    assert caller.get(address + 36, 24) == b"\xaa" * 24
    console.change(off=ICANON | ECHO)
    caller.ok("ioctl", console.master, TCGETS, address)
    assert not caller.unpack(SETTINGS, address)[3] & ICANON
    caller.ok("ioctl", console.slave, TIOCSWINSZ, caller.pack("4H", 30, 100, 0, 0))
    size = caller.room(8)
    caller.ok("ioctl", console.master, TIOCGWINSZ, size)
    assert caller.unpack("4H", size) == (30, 100, 0, 0)
    assert console.word(TIOCGPTN, console.master) == 0
    caller.ok("ioctl", console.master, TIOCSPTLCK, caller.pack("I", 0))
    assert caller.errno("ioctl", console.slave, TIOCGPTN, size) is Errno.ENOTTY
    assert caller.errno("ioctl", console.slave, 0x1234, size) is Errno.ENOTTY


def test_flushing(console: Console) -> None:
    caller = console.caller
    caller.write(console.master, b"typed\n")
    assert console.word(FIONREAD) == 6
    console.change(how=TCSETSW)
    assert console.word(FIONREAD) == 6
    console.change(how=TCSETSF)
    assert console.word(FIONREAD) == 0
    assert caller.errno("ioctl", console.slave, TCFLSH, 3) is Errno.EINVAL


@pytest.mark.parametrize(
    ("side", "which", "left"),
    [
        ("slave", 0, (0, 7)),
        ("slave", 1, (3, 7)),
        ("slave", 2, (0, 7)),
        ("master", 0, (3, 0)),
        ("master", 1, (3, 7)),
        ("master", 2, (3, 0)),
    ],
)
def test_each_side_flushes_what_it_could_read_and_nothing_waits_as_output(
    console: Console, side: str, which: int, left: tuple[int, int]
) -> None:
    caller = console.caller
    console.change(off=ECHO)
    caller.write(console.master, b"in\n")
    caller.write(console.slave, b"output\b")
    caller.ok("ioctl", getattr(console, side), TCFLSH, which)
    assert (console.word(FIONREAD), console.word(FIONREAD, console.master)) == left
    assert console.word(TIOCOUTQ) == console.word(TIOCOUTQ, console.master) == 0


def test_flow_control_suspends_and_restarts_output(console: Console) -> None:
    caller = console.caller
    caller.ok("ioctl", console.slave, TCXONC, 0)
    child = caller.fork()
    writing = child.begin("write", console.slave, child.put(b"later"), 5)
    assert writing.is_blocked()
    caller.ok("ioctl", console.slave, TCXONC, 1)
    assert writing.result() == 5
    assert caller.errno("ioctl", console.slave, TCXONC, 4) is Errno.EINVAL


def test_a_read_with_a_time_limit_returns_nothing_or_what_came(console: Console) -> None:
    caller = console.caller
    console.change(off=ICANON | ECHO, control={VMIN: 0, VTIME: 1})
    began = time.monotonic()
    assert caller.read(console.slave, 10) == b""
    assert 0.09 <= time.monotonic() - began < 5
    console.change(control={VMIN: 3, VTIME: 1})
    child = caller.fork()
    reading = child.begin("read", console.slave, buffer := child.room(10), 10)
    assert reading.is_blocked()
    assert not reading.ended(0.15), "the time starts with the first byte"
    caller.write(console.master, b"ab")
    assert reading.result() == 2
    assert child.get(buffer, 2) == b"ab"


# Sessions and job control.


@pytest.mark.syscalls("ioctl")
def test_the_foreground_group(console: Console) -> None:
    caller = console.caller
    pid = caller.process.pid
    assert (console.word(TIOCGPGRP), console.word(TIOCGSID)) == (pid, pid)
    child = caller.fork()
    caller.ok("setpgid", child.process.pid, 0)
    caller.ok("ioctl", console.slave, TIOCSPGRP, caller.pack("I", child.process.pid))
    assert console.word(TIOCGPGRP) == child.process.pid
    for group, errno in ((-1, Errno.EINVAL), (9999, Errno.ESRCH), (1, Errno.EPERM)):
        assert child.errno("ioctl", console.slave, TIOCSPGRP, child.pack("i", group)) is errno


def test_another_session_cannot_use_the_terminal(console: Console) -> None:
    caller = console.caller
    stranger = caller.fork()
    stranger.ok("setpgid", 0, 0)
    grandchild = stranger.fork()
    grandchild.ok("setsid")
    address = grandchild.room(4)
    for request in (TIOCGPGRP, TIOCSPGRP, TIOCGSID, TIOCNOTTY):
        assert grandchild.errno("ioctl", console.slave, request, address) is Errno.ENOTTY
    assert grandchild.errno("ioctl", console.slave, TIOCSCTTY, 0) is Errno.EPERM


def test_a_new_session_takes_a_free_terminal(caller: Caller) -> None:
    caller.open(b"/dev/ptmx", O_RDWR | O_NOCTTY)
    slave = caller.open(b"/dev/pts/0", O_RDWR | O_NOCTTY)
    child = caller.fork()
    assert child.errno("ioctl", slave, TIOCSCTTY, 0) is Errno.EPERM
    child.ok("setsid")
    child.ok("ioctl", slave, TIOCSCTTY, 0)
    assert child.open(b"/dev/tty", O_RDWR) > slave


def test_giving_up_the_terminal(console: Console) -> None:
    caller = console.caller
    caller.handle(Signal.SIGHUP)
    caller.ok("ioctl", console.slave, TIOCNOTTY, 0)
    assert caller.errno("openat", AT_FDCWD, b"/dev/tty", O_RDWR, 0) is Errno.ENXIO
    assert caller.take_signal()[0] == Signal.SIGHUP


def test_a_background_reader_is_stopped_until_it_is_in_the_foreground(console: Console) -> None:
    caller = console.caller
    child = caller.fork()
    caller.ok("setpgid", child.process.pid, 0)
    caller.write(console.master, b"line\n")
    reading = child.begin("read", console.slave, buffer := child.room(10), 10)
    assert reading.is_stopped()
    status = caller.room(4)
    assert caller.ok("wait4", -1, status, 2, 0) == child.process.pid
    assert caller.unpack("I", status)[0] == 0x7F | Signal.SIGTTIN << 8
    caller.ok("ioctl", console.slave, TIOCSPGRP, caller.pack("I", child.process.pid))
    caller.ok("kill", child.process.pid, Signal.SIGCONT)
    assert caller.ok("wait4", -1, status, 8, 0) == child.process.pid
    assert caller.unpack("I", status)[0] == 0xFFFF
    assert reading.result() == 5
    assert child.get(buffer, 5) == b"line\n"


@pytest.mark.parametrize("tostop", [False, True])
def test_a_background_writer_is_stopped_only_with_tostop(console: Console, tostop: bool) -> None:
    caller = console.caller
    if tostop:
        console.change(on=TOSTOP)
    child = caller.fork()
    caller.ok("setpgid", child.process.pid, 0)
    writing = child.begin("write", console.slave, child.put(b"hello"), 5)
    assert writing.is_stopped() is tostop
    if tostop:
        caller.ok("ioctl", console.slave, TIOCSPGRP, caller.pack("I", child.process.pid))
        caller.ok("kill", child.process.pid, Signal.SIGCONT)
    assert writing.result() == 5


def test_changing_settings_from_the_background_stops(console: Console) -> None:
    caller = console.caller
    child = caller.fork()
    caller.ok("setpgid", child.process.pid, 0)
    caller.write(console.master, b"typed\n")
    changing = child.begin("ioctl", console.slave, TCSETSF, child.put(bytes(36)))
    assert changing.is_stopped()
    assert console.word(FIONREAD) == 6, "nothing was flushed"


def test_after_a_hang_up_terminals_answer_eio(console: Console) -> None:
    caller = console.caller
    caller.handle(Signal.SIGHUP)
    caller.ok("close", console.master)
    assert caller.take_signal()[0] == Signal.SIGHUP
    assert caller.read(console.slave, 10) == b""
    assert caller.errno("write", console.slave, caller.put(b"x"), 1) is Errno.EIO
    assert caller.errno("ioctl", console.slave, TCGETS, caller.room(60)) is Errno.EIO


def test_a_terminal_is_known_by_its_name(console: Console) -> None:
    """As ttyname does: the link of the fd leads to the same device."""
    caller = console.caller
    link = caller.room(100)
    size = caller.ok("readlinkat", AT_FDCWD, b"/proc/self/fd/%d" % console.slave, link, 100)
    name = caller.get(link, size)
    assert name == b"/dev/pts/0"
    by_name, by_fd = caller.room(256), caller.room(256)
    caller.ok("statx", AT_FDCWD, name, 0, 0x7FF, by_name)
    caller.ok("statx", console.slave, b"", 0x1000, 0x7FF, by_fd)
    assert caller.get(by_name, 256) == caller.get(by_fd, 256)
