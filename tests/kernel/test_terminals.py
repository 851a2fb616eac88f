"""Pseudo-terminals: both sides, flow, hang-up, sessions, foreground and background."""

from __future__ import annotations

import pytest

from tests.kernel.system import USER, System, Woken, blocks, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.line_discipline import ICANON, TOSTOP, VMIN, VTIME
from wasmsand.kernel.files.terminal import TerminalFile, TerminalMaster
from wasmsand.kernel.flags import (
    O_NOCTTY,
    O_NONBLOCK,
    O_RDWR,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.groups import (
    leave_terminal,
    require_foreground_to_change,
    require_foreground_to_read,
    set_foreground,
    set_group,
    set_session,
    take_terminal,
)
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import SIG_IGN, Signal, SignalAction, mask_of

READABLE = POLLIN | POLLRDNORM
WRITABLE = POLLOUT | POLLWRNORM


@pytest.fixture
def master(system: System, process: Process) -> TerminalMaster:
    file = system.open(process, b"/dev/ptmx", O_RDWR)
    assert isinstance(file, TerminalMaster)
    return file


@pytest.fixture
def slave(system: System, process: Process, master: TerminalMaster) -> TerminalFile:
    """The program's side, which becomes the terminal of `process`'s session."""
    file = system.open(process, b"/dev/pts/0", O_RDWR)
    assert isinstance(file, TerminalFile)
    return file


def test_what_is_typed_is_echoed_and_read(master: TerminalMaster, slave: TerminalFile) -> None:
    master.write(b"hi\n")
    assert slave.read(100) == b"hi\n"
    assert master.read(100) == b"hi\r\n"


def test_what_is_written_is_shown(master: TerminalMaster, slave: TerminalFile) -> None:
    slave.write(b"a\nb")
    assert master.read(2) == b"a\r"
    assert master.read(100) == b"\nb"


def test_a_read_waits_for_a_line(master: TerminalMaster, slave: TerminalFile) -> None:
    woken = Woken(blocks(lambda: slave.read(10)))
    master.write(b"x\n")
    assert woken
    assert slave.read(10) == b"x\n"
    slave.flags |= O_NONBLOCK
    assert errno_of(lambda: slave.read(10)) is Errno.EAGAIN


def test_output_waits_when_nobody_reads_it(master: TerminalMaster, slave: TerminalFile) -> None:
    slave.flags |= O_NONBLOCK
    written = 0
    with pytest.raises(Exception, match="EAGAIN"):
        while True:
            written += slave.write(b"line\n" * 100)
    assert written < 70_000
    assert not slave.poll() & POLLOUT
    master.read(60_000)
    assert slave.poll() & POLLOUT


def test_echo_cannot_grow_without_bound(master: TerminalMaster, slave: TerminalFile) -> None:
    master.flags |= O_NONBLOCK
    for _ in range(60):
        try:
            master.write(b"x\n" * 1000)
        except Exception:
            slave.terminal.discipline.flush_input()
            slave.terminal.feed()
    assert len(slave.terminal.output) <= 65536


def test_typing_waits_for_the_program_and_nothing_is_lost(
    master: TerminalMaster, slave: TerminalFile
) -> None:
    typed = b"".join(b"line %d\n" % i for i in range(3000))
    sent, received = 0, b""
    while len(received) < len(typed):
        if sent < len(typed) and master.poll() & POLLOUT:
            sent += master.write(typed[sent:])
            assert sent < len(received) + 10_000
        else:
            received += slave.read(100)
    assert received == typed


def test_the_host_can_paste_any_amount(master: TerminalMaster, slave: TerminalFile) -> None:
    typed = b"".join(b"line %d\n" % i for i in range(3000))
    slave.terminal.type_keys(typed)
    assert b"".join(slave.read(100) for _ in range(3000)) == typed


def test_a_suspended_output_waits_for_start(master: TerminalMaster, slave: TerminalFile) -> None:
    master.write(b"\x13")
    woken = Woken(blocks(lambda: slave.write(b"x")))
    assert not slave.poll() & POLLOUT
    master.write(b"\x11")
    assert woken
    assert slave.write(b"x") == 1


def test_resizing_tells_the_foreground_group(
    system: System, process: Process, slave: TerminalFile
) -> None:
    system.handle(process, Signal.SIGWINCH)
    slave.terminal.resize(0, 0)  # the size of a new terminal, as on Linux
    assert not process.signals.pending
    slave.terminal.resize(50, 100)
    assert process.signals.pending == mask_of(Signal.SIGWINCH)


@pytest.mark.parametrize(
    ("key", "signo"),
    [(b"\x03", Signal.SIGINT), (b"\x1c", Signal.SIGQUIT), (b"\x1a", Signal.SIGTSTP)],
)
def test_keys_signal_the_foreground_group_only(
    system: System,
    process: Process,
    master: TerminalMaster,
    slave: TerminalFile,
    key: bytes,
    signo: int,
) -> None:
    foreground, background = system.fork(process), system.fork(process)
    for child in (foreground, background):
        set_group(system.kernel, child, 0, 0)
    for everybody in (process, foreground, background):
        system.handle(everybody, signo)
    set_foreground(system.kernel, process.first_thread, slave.terminal, foreground.pid)
    master.write(key)
    pending = [bool(p.signals.pending) for p in (process, foreground, background)]
    assert pending == [False, True, False]


def test_reading_times_out_by_vtime(master: TerminalMaster, slave: TerminalFile) -> None:
    discipline = slave.terminal.discipline
    discipline.termios.lflag &= ~ICANON
    cc = bytearray(discipline.termios.cc)
    cc[VTIME], cc[VMIN] = 2, 0
    discipline.termios.cc = bytes(cc)
    assert slave.read_timeout() == 200_000_000
    cc[VMIN] = 3
    discipline.termios.cc = bytes(cc)
    assert slave.read_timeout() == 0, "the time starts with the first byte"
    master.write(b"x")
    assert slave.read_timeout() == 200_000_000
    assert slave.read_after_timeout(10) == b"x"


# Names and numbers.


def test_a_terminal_appears_in_dev_pts_and_goes_with_its_master(
    system: System, process: Process, master: TerminalMaster, slave: TerminalFile
) -> None:
    namespace = system.kernel.namespace
    entry = namespace.stat(namespace.resolve(process.identity.credentials(), process.cwd,
                                             b"/dev/pts/0"))  # fmt: skip
    assert entry == slave.stat()
    assert (entry.uid, entry.mode & 0o777, entry.rdev) == (USER, 0o620, 136 << 8)
    master.release()
    other = system.command()  # the hang-up has ended the first one
    assert errno_of(lambda: system.open(other, b"/dev/pts/0", O_RDWR)) is Errno.ENOENT
    assert slave.stat().rdev == 136 << 8, "an open side can still be used"
    slave.release()


def test_numbers_are_reused_lowest_first_and_bounded(system: System, process: Process) -> None:
    masters = [system.open(process, b"/dev/ptmx", O_RDWR) for _ in range(64)]
    assert errno_of(lambda: system.open(process, b"/dev/ptmx", O_RDWR)) is Errno.ENOSPC
    masters[5].release()
    again = system.open(process, b"/dev/ptmx", O_RDWR)
    assert isinstance(again, TerminalMaster)
    assert again.terminal.index == 5


def test_a_full_file_system_makes_no_terminal() -> None:
    system = System(Limits(max_inodes=200))
    process = system.command()
    free = system.kernel.root.statfs().files_free
    for i in range(free):
        system.make_file(b"/tmp/%d" % i)
    assert errno_of(lambda: system.open(process, b"/dev/ptmx", O_RDWR)) is Errno.ENOSPC
    assert not system.kernel.terminals


def test_a_terminal_survives_the_removal_of_its_name(
    system: System, master: TerminalMaster, slave: TerminalFile
) -> None:
    root = system.command(uid=0)
    namespace = system.kernel.namespace
    namespace.unlink(root.identity.credentials(), root.cwd, b"/dev/pts/0")
    slave.write(b"still here")
    assert master.read(100) == b"still here"
    assert slave.stat().nlink == 0
    master.release()
    slave.release()


# Hang-up.


def test_after_the_master_is_gone_reads_end_and_writes_fail(
    system: System, process: Process, master: TerminalMaster, slave: TerminalFile
) -> None:
    system.handle(process, Signal.SIGHUP)
    woken = Woken(blocks(lambda: slave.read(1)))
    master.release()
    assert woken
    assert slave.read(1) == b""
    assert errno_of(lambda: slave.write(b"x")) is Errno.EIO
    assert slave.poll() == READABLE | WRITABLE | POLLHUP | POLLERR
    assert errno_of(lambda: system.open(process, b"/dev/tty", O_RDWR)) is Errno.EIO


def test_a_hang_up_signals_the_session_leader(
    system: System, process: Process, master: TerminalMaster, slave: TerminalFile
) -> None:
    system.send(process, Signal.SIGSTOP)
    master.release()
    assert (process.dead, process.exit_status) == (True, Signal.SIGHUP)


def test_the_masters_reads_fail_when_the_last_slave_is_closed(
    system: System, process: Process, master: TerminalMaster
) -> None:
    blocks(lambda: master.read(1))
    slave = system.open(process, b"/dev/pts/0", O_RDWR | O_NOCTTY)
    slave.write(b"last words")
    slave.release()
    assert master.read(100) == b"last words"
    assert errno_of(lambda: master.read(1)) is Errno.EIO
    assert master.poll() == POLLHUP | WRITABLE
    system.open(process, b"/dev/pts/0", O_RDWR | O_NOCTTY)
    assert master.poll() == WRITABLE
    blocks(lambda: master.read(1))


def test_a_dying_leader_gives_up_the_terminal_and_hangs_up_the_foreground(
    system: System, process: Process, slave: TerminalFile
) -> None:
    foreground, background = system.fork(process), system.fork(process)
    for child in (foreground, background):
        set_group(system.kernel, child, 0, 0)
    set_foreground(system.kernel, process.first_thread, slave.terminal, foreground.pid)
    system.kernel.exit(process, 0)
    assert (foreground.dead, background.dead) == (True, False)
    assert background.terminal is None
    assert (slave.terminal.session, slave.terminal.foreground_group) == (0, 0)


# Controlling terminals.


def test_a_session_leader_without_terminal_gets_the_one_it_opens(
    system: System, process: Process, slave: TerminalFile
) -> None:
    assert process.terminal is slave.terminal
    assert slave.terminal.session == process.session
    assert slave.terminal.foreground_group == process.group
    child = system.fork(process)
    assert isinstance(system.open(child, b"/dev/tty", O_RDWR), TerminalFile)


def test_noctty_and_followers_do_not_take_a_terminal(
    system: System, process: Process, master: TerminalMaster
) -> None:
    system.open(process, b"/dev/pts/0", O_RDWR | O_NOCTTY)
    system.open(system.fork(process), b"/dev/pts/0", O_RDWR)
    assert process.terminal is None
    assert errno_of(lambda: system.open(process, b"/dev/tty", O_RDWR)) is Errno.ENXIO


def test_a_terminal_serves_one_session_and_a_session_has_one_terminal(
    system: System, process: Process, slave: TerminalFile
) -> None:
    stranger = system.command()
    assert errno_of(lambda: take_terminal(stranger, slave.terminal)) is Errno.EPERM
    child = system.fork(process)
    assert errno_of(lambda: take_terminal(child, slave.terminal)) is Errno.EPERM
    second = system.kernel.new_terminal(USER, USER)
    assert errno_of(lambda: take_terminal(process, second)) is Errno.EPERM
    take_terminal(process, slave.terminal)
    take_terminal(stranger, second)
    assert stranger.terminal is second


def test_a_follower_leaves_the_terminal_for_itself_a_leader_for_all(
    system: System, process: Process, slave: TerminalFile
) -> None:
    child, other = system.fork(process), system.fork(process)
    leave_terminal(system.kernel, child)
    assert (child.terminal, other.terminal) == (None, slave.terminal)
    assert slave.terminal.session == process.session
    system.handle(process, Signal.SIGHUP)
    leave_terminal(system.kernel, process)
    assert (process.terminal, other.terminal) == (None, None)
    assert slave.terminal.session == 0
    assert other.dead, "the process was in the foreground group, which is hung up"


# Foreground and background.


@pytest.fixture
def background(system: System, process: Process, slave: TerminalFile) -> Process:
    child = system.fork(process)
    set_group(system.kernel, child, 0, 0)
    return child


def test_a_background_reader_is_stopped(
    system: System, slave: TerminalFile, background: Process
) -> None:
    blocks(
        lambda: require_foreground_to_read(system.kernel, background.first_thread, slave.terminal)
    )
    assert background.stopped
    assert background.state_change == 0x7F | Signal.SIGTTIN << 8


@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_a_background_reader_that_cannot_be_stopped_gets_eio(
    system: System, slave: TerminalFile, background: Process, how: str
) -> None:
    if how == "ignored":
        background.signals.set_action(Signal.SIGTTIN, SignalAction(SIG_IGN))
    else:
        background.signals.set_mask(mask_of(Signal.SIGTTIN))
    assert (
        errno_of(
            lambda: require_foreground_to_read(
                system.kernel, background.first_thread, slave.terminal
            )
        )
        is Errno.EIO
    )


def test_an_orphaned_background_reader_gets_eio(
    system: System, process: Process, slave: TerminalFile, background: Process
) -> None:
    child = system.fork(background)
    system.kernel.exit(background, 0)
    assert (
        errno_of(
            lambda: require_foreground_to_read(system.kernel, child.first_thread, slave.terminal)
        )
        is Errno.EIO
    )
    assert not child.stopped


def test_changing_the_terminal_from_the_background_stops_unless_ignored(
    system: System, slave: TerminalFile, background: Process
) -> None:
    background.signals.set_action(Signal.SIGTTOU, SignalAction(SIG_IGN))
    require_foreground_to_change(system.kernel, background.first_thread, slave.terminal)
    set_foreground(system.kernel, background.first_thread, slave.terminal, background.pid)
    assert slave.terminal.foreground_group == background.pid


def test_tcsetpgrp_from_the_background_stops(
    system: System, slave: TerminalFile, background: Process
) -> None:
    blocks(
        lambda: set_foreground(
            system.kernel, background.first_thread, slave.terminal, background.pid
        )
    )
    assert background.stopped


@pytest.mark.parametrize(
    ("group", "errno"), [(-1, Errno.EINVAL), (999, Errno.ESRCH), (1, Errno.EPERM)]
)
def test_the_foreground_must_be_a_group_of_the_session(
    system: System, process: Process, slave: TerminalFile, group: int, errno: Errno
) -> None:
    assert (
        errno_of(lambda: set_foreground(system.kernel, process.first_thread, slave.terminal, group))
        is errno
    )


def test_strangers_cannot_change_the_foreground(system: System, slave: TerminalFile) -> None:
    stranger = system.command()
    assert (
        errno_of(
            lambda: set_foreground(
                system.kernel, stranger.first_thread, slave.terminal, stranger.pid
            )
        )
        is Errno.ENOTTY
    )


def test_tostop_is_read_from_the_settings(slave: TerminalFile) -> None:
    assert not slave.stops_background_writers
    slave.terminal.discipline.termios.lflag |= TOSTOP
    assert slave.stops_background_writers


def test_a_new_session_has_no_terminal(
    system: System, process: Process, slave: TerminalFile
) -> None:
    child = system.fork(process)
    set_session(system.kernel, child)
    assert child.terminal is None
    assert process.terminal is slave.terminal
