"""Calls that are too long for one hold of the lock: they continue in parts, and can be ended."""

from __future__ import annotations

import time

import pytest

from tests.abi.caller import PATIENCE, Caller, PythonInstance, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import ARGUMENTS_PER_HOLD, IO_CHUNK
from wasmsand.kernel.process.signals import Signal

SPACE = 24 << 20
PLACE = 4 << 20
MORE = 3 * IO_CHUNK + 12_345


def large(sandbox: Sandbox) -> Caller:
    process = sandbox.process().process
    return Caller(sandbox.kernel, sandbox.lock, sandbox.loader, process, PythonInstance(SPACE))


@pytest.fixture
def caller() -> Caller:
    return large(Sandbox())


def pattern(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def test_a_long_write_and_read_move_everything(caller: Caller) -> None:
    content = pattern(MORE)
    caller.space[PLACE : PLACE + MORE] = content
    file = caller.ok("openat", -100, b"/tmp/f", 0o102, 0o644)
    assert caller.ok("write", file, PLACE, MORE) == MORE
    caller.space[PLACE : PLACE + MORE] = bytes(MORE)
    assert caller.ok("pread64", file, PLACE, MORE, 0, 0) == MORE
    assert caller.get(PLACE, MORE) == content
    assert caller.ok("read", file, PLACE, MORE) == 0


def test_a_long_positioned_write_moves_everything(caller: Caller) -> None:
    content = pattern(MORE)
    caller.space[PLACE : PLACE + MORE] = content
    file = caller.ok("openat", -100, b"/tmp/f", 0o102, 0o644)
    vectors = caller.vectors((PLACE, IO_CHUNK + 5), (PLACE + IO_CHUNK + 5, MORE - IO_CHUNK - 5))
    assert caller.ok("pwritev", file, vectors, 2, 100, 0) == MORE
    caller.space[PLACE : PLACE + MORE] = bytes(MORE)
    assert caller.ok("pread64", file, PLACE, MORE, 100, 0) == MORE
    assert caller.get(PLACE, MORE) == content


def test_a_long_read_ends_at_the_end_of_the_file(caller: Caller) -> None:
    file = caller.ok("openat", -100, b"/tmp/f", 0o102, 0o644)
    assert caller.ok("write", file, PLACE, 2 * IO_CHUNK + 1) == 2 * IO_CHUNK + 1
    assert caller.ok("pread64", file, PLACE, SPACE - PLACE, 0, 0) == 2 * IO_CHUNK + 1


def test_a_read_beyond_the_end_of_memory_returns_what_fits(caller: Caller) -> None:
    file = caller.ok("openat", -100, b"/dev/zero", 0)
    vectors = caller.vectors((PLACE, IO_CHUNK), (SPACE - 10, 10))
    assert caller.ok("readv", file, vectors, 2) == IO_CHUNK + 10
    assert caller.ok("read", file, SPACE - IO_CHUNK, 2 * IO_CHUNK) == IO_CHUNK
    assert caller.errno("read", file, SPACE, 1) is Errno.EFAULT


def test_a_kill_ends_an_endless_read(caller: Caller) -> None:
    file = caller.ok("openat", -100, b"/dev/urandom", 0)
    vectors = caller.vectors(*[(PLACE, 2 << 20)] * 900)
    pending = caller.begin("readv", file, vectors, 900)
    time.sleep(0.05)
    with caller.lock:
        caller.kernel.exit(caller.process, Signal.SIGKILL)
    assert pending.ended(PATIENCE)


def test_a_long_list_of_arguments_is_read_whole(caller: Caller) -> None:
    count = 3 * ARGUMENTS_PER_HOLD + 7
    names = caller.room(4 * (count + 1) + 16 * count)
    place = names + 4 * (count + 1)
    for number in range(count):
        text = b"%d\0" % number
        caller.space[place : place + len(text)] = text
        caller.space[names + 4 * number : names + 4 * number + 4] = place.to_bytes(4, "little")
        place += len(text)
    caller.space[names + 4 * count : names + 4 * count + 4] = bytes(4)
    assert caller.call("execve", b"/usr/bin/prog", names, 0) == 0
    assert caller.process.argv == tuple(b"%d" % number for number in range(count))
    assert caller.guest.thread.call.progress is None


def test_a_walk_through_too_many_names_is_refused(caller: Caller) -> None:
    for number in range(10):
        there = b"./" * 2000 + b"link%d" % (number + 1)
        caller.ok("symlinkat", there, -100, b"/tmp/link%d" % number)
    caller.ok("mkdirat", -100, b"/tmp/link10", 0o755)
    assert caller.errno("chdir", b"/tmp/link0") is Errno.ELOOP
    caller.ok("chdir", b"/tmp/link8")
