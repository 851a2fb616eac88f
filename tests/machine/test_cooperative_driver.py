"""A driver without threads runs on the same dispatcher as the machine's driver."""

from __future__ import annotations

import ast
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

import wasmsand.machine
from tests.machine.cooperative_driver import (
    Memory,
    Request,
    Scheduler,
    Steps,
    Text,
    arguments_of,
)
from wasmsand.abi.linux.numbers import CallNumber as Call
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.opening import open_path
from wasmsand.kernel.flags import O_CREAT, O_RDWR
from wasmsand.kernel.process.signals import Signal

pytestmark = pytest.mark.no_userland

VFORK = 0x4111
MANY = 300_000
"""More bytes than a pipe holds."""
ANY_CHILD = -1
OUT = b"/tmp/out"


# Programs.


def echo(memory: Memory) -> Steps:
    words = yield from arguments_of(memory)
    line = b" ".join(words[1:]) + b"\n"
    yield Call.WRITE, 1, memory.put(line), len(line)
    yield Call.EXIT_GROUP, 0


def tr(memory: Memory) -> Steps:
    _, old, new = yield from arguments_of(memory)
    place = memory.room(4096)
    while (count := (yield Call.READ, 0, place, 4096)) > 0:
        translated = memory.get(place, count).translate(bytes.maketrans(old, new))
        yield Call.WRITE, 1, memory.put(translated), count
    yield Call.EXIT_GROUP, 0


def produce(memory: Memory) -> Steps:
    written = yield Call.WRITE, 1, memory.put(bytes(MANY)), MANY
    yield Call.EXIT_GROUP, int(written != MANY)


def count_bytes(memory: Memory) -> Steps:
    place, total = memory.room(4096), 0
    while (count := (yield Call.READ, 0, place, 4096)) > 0:
        total += count
    text = b"%d\n" % total
    yield Call.WRITE, 1, memory.put(text), len(text)


def sleep(memory: Memory) -> Steps:
    _, seconds = yield from arguments_of(memory)
    span = memory.put(int(seconds).to_bytes(8, "little") + bytes(8))
    yield Call.CLOCK_NANOSLEEP_TIME64, 0, 0, span, 0


def replace(memory: Memory) -> Steps:
    """A program that replaces itself with `echo`."""
    argv = memory.strings(b"echo", b"replaced")
    yield Call.EXECVE, memory.put(b"/usr/bin/echo\0"), argv, memory.strings()
    raise AssertionError("execve returned")


def spawn(memory: Memory, files: dict[int, int], *argv: bytes) -> Generator[Request, int, int]:
    """Start a program with these descriptors as its standard ones, as posix_spawn does."""
    pid = yield Call.CLONE, VFORK
    assert pid == 0
    for number, fd in files.items():
        yield Call.DUP3, fd, number, 0
    for fd in files.values():
        yield Call.CLOSE, fd
    path = memory.put(b"/usr/bin/" + argv[0] + b"\0")
    pid = yield Call.EXECVE, path, memory.strings(*argv), memory.strings()
    assert pid > 0  # the caller is the parent again
    return pid


def pipeline(left: tuple[bytes, ...], right: tuple[bytes, ...]) -> Text:
    """A program that does what a shell does for `left | right`."""

    def shell(memory: Memory) -> Steps:
        ends = memory.room(8)
        yield Call.PIPE2, ends, 0o2000000  # O_CLOEXEC
        reading, writing = memory.words(ends, 2)
        # The reader starts first, so that it has to wait.
        yield from spawn(memory, {0: reading}, *right)
        yield from spawn(memory, {1: writing}, *left)
        yield Call.CLOSE, reading
        yield Call.CLOSE, writing
        status = memory.room(4)
        codes: list[int] = []
        while (yield Call.WAIT4, ANY_CHILD, status, 0, 0) > 0:
            codes += memory.words(status, 1)
        yield Call.EXIT_GROUP, int(codes != [0, 0])

    return shell


def make(**shells: Text) -> Scheduler:
    texts: dict[bytes, Text] = {
        b"echo": echo, b"tr": tr, b"produce": produce, b"count": count_bytes, b"sleep": sleep,
        b"replace": replace,
    }  # fmt: skip
    return Scheduler(texts | {name.encode(): text for name, text in shells.items()})


def standard_files(scheduler: Scheduler) -> dict[int, OpenFile]:
    """Standard files: empty input, and a file for the output."""
    kernel, root = scheduler.kernel, scheduler.kernel.namespace.root

    def opened(path: bytes, flags: int) -> OpenFile:
        return open_path(kernel, kernel.init.first_thread, root, path, flags, 0o666)

    return {
        0: opened(b"/dev/null", O_RDWR),
        1: opened(OUT, O_RDWR | O_CREAT),
        2: opened(b"/dev/null", O_RDWR),
    }


def test_echo_a_through_tr_a_b_on_one_thread() -> None:
    threads = threading.active_count()
    scheduler = make(sh=pipeline((b"echo", b"a"), (b"tr", b"a", b"b")))
    shell = scheduler.start(standard_files(scheduler), b"sh")
    scheduler.run()
    assert scheduler.content(OUT) == b"b\n"
    assert shell.exit_status == 0
    assert [process.pid for process in scheduler.kernel.processes] == [1]
    assert scheduler.waits >= 3  # for modules, for the pipe and for the children
    assert threading.active_count() == threads


def test_a_writer_waits_until_the_reader_has_made_room() -> None:
    scheduler = make(sh=pipeline((b"produce",), (b"count",)))
    shell = scheduler.start(standard_files(scheduler), b"sh")
    scheduler.run()
    assert (scheduler.content(OUT), shell.exit_status) == (b"%d\n" % MANY, 0)


def test_a_sleep_ends_when_its_time_has_come() -> None:
    scheduler = make()
    scheduler.start(standard_files(scheduler), b"sleep", b"100")
    scheduler.run()
    assert scheduler.now == 100 * SECOND


def test_a_program_replaces_itself() -> None:
    scheduler = make()
    scheduler.start(standard_files(scheduler), b"replace")
    scheduler.run()
    assert scheduler.content(OUT) == b"replaced\n"


def test_a_signal_ends_a_wait_and_a_stopped_guest_goes_on() -> None:
    seen: list[object] = []

    def shell(memory: Memory) -> Steps:
        pid = yield from spawn(memory, {}, b"sleep", b"100")
        status = memory.room(4)
        yield Call.KILL, pid, Signal.SIGSTOP
        yield Call.WAIT4, pid, status, 2, 0  # WUNTRACED
        seen.append(memory.words(status, 1)[0] == Signal.SIGSTOP << 8 | 0x7F)
        yield Call.KILL, pid, Signal.SIGCONT
        yield Call.KILL, pid, Signal.SIGTERM
        yield Call.WAIT4, pid, status, 0, 0
        seen.append(memory.words(status, 1)[0] == Signal.SIGTERM)
        action = memory.put(bytes([77]) + bytes(19))
        yield Call.RT_SIGACTION, Signal.SIGALRM, action, 0, 8
        yield Call.KILL, (yield (Call.GETPID,)), Signal.SIGALRM
        span = memory.put((100).to_bytes(8, "little") + bytes(8))
        result = yield Call.CLOCK_NANOSLEEP_TIME64, 0, 0, span, 0
        seen.append(result == -Errno.EINTR)

    scheduler = make(sh=shell)
    scheduler.start(standard_files(scheduler), b"sh")
    scheduler.run()
    assert seen == [True, True, True]
    assert scheduler.now == 0


THREADS = {"_thread", "threading", "queue", "concurrent", "asyncio", "time"}
DRIVER_PARTS = {"lock", "parking", "turns", "loading", "thread_driver"}


@pytest.mark.parametrize(
    "name", ["dispatcher", "guest", "driver", "module_source", "program_start", "thread_locals"]
)
def test_the_code_that_drivers_share_uses_no_threads_and_no_clock(name: str) -> None:
    source = Path(wasmsand.machine.__file__).parent / f"{name}.py"
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            assert module.partition(".")[0] not in THREADS
            assert module.removeprefix("wasmsand.machine.") not in DRIVER_PARTS
