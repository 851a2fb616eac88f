"""Evidence for rows of docs/limitations.md that system calls show."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller, PythonInstance, Sandbox
from wasmsand.abi.linux.table import HANDLERS
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import F_SETLK64, F_SETLKW64, O_RDWR
from wasmsand.machine.lock import SandboxLock

F_WRLCK = 1


@pytest.mark.xfail(reason="L009: there are no POSIX timers", strict=True)
def test_a_posix_timer_can_be_made(caller: Caller) -> None:
    assert 107 in HANDLERS, "timer_create"


@pytest.mark.xfail(reason="L011: a running program can be overwritten", strict=True)
def test_a_running_program_cannot_be_written(caller: Caller) -> None:
    program = caller.make_file(b"/tmp/program", b"\0asm\1\0\0\0", 0o755)
    child = caller.fork()
    child.call("execve", program, child.strings(b"program"), child.strings())
    assert caller.call("openat", -100, program, O_RDWR, 0) == -int(Errno.ETXTBSY)


@pytest.mark.xfail(reason="L012: two processes that wait for each other wait for ever", strict=True)
def test_a_deadlock_of_record_locks_is_reported(caller: Caller) -> None:
    path = caller.make_file(b"/tmp/locked", b"two bytes")
    other = caller.fork()
    mine, theirs = caller.open(path, O_RDWR), other.open(path, O_RDWR)

    def lock(who: Caller, byte: int) -> int:
        return who.pack("hh4xqqi4x", F_WRLCK, 0, byte, 1, 0)

    caller.ok("fcntl64", mine, F_SETLK64, lock(caller, 0))
    other.ok("fcntl64", theirs, F_SETLK64, lock(other, 1))
    waiting = caller.begin("fcntl64", mine, F_SETLKW64, lock(caller, 1))
    assert waiting.is_blocked()
    second = other.begin("fcntl64", theirs, F_SETLKW64, lock(other, 0))
    assert second.ended(within=0.2)
    assert second.result() == -Errno.EDEADLK


@pytest.mark.xfail(reason="L015: there is no inotify", strict=True)
def test_files_can_be_watched(caller: Caller) -> None:
    caller.ok("inotify_init1", 0)


@pytest.mark.needs_sources
@pytest.mark.xfail(reason="L037: long writes are done in pieces", strict=True)
def test_a_long_append_is_not_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox()
    process = sandbox.process().process
    instance = PythonInstance(8 << 20)
    caller = Caller(sandbox.kernel, sandbox.lock, sandbox.loader, process, instance)
    other = sandbox.process()
    flags = 0o2102  # O_RDWR | O_CREAT | O_APPEND
    mine = caller.ok("openat", -100, b"/tmp/log", flags, 0o666)
    theirs = other.ok("openat", -100, b"/tmp/log", 0o2001)
    give_way = SandboxLock.give_way

    def let_the_other_write(lock: SandboxLock) -> None:
        monkeypatch.setattr(SandboxLock, "give_way", give_way)
        lock.release()
        other.ok("write", theirs, other.put(b"x"), 1)
        lock.acquire()

    monkeypatch.setattr(SandboxLock, "give_way", let_the_other_write)
    assert caller.ok("write", mine, 1 << 20, 2 << 20) == 2 << 20
    assert caller.ok("pread64", mine, 1 << 20, 2 << 20, 0, 0) == 2 << 20
    assert b"x" not in caller.get(1 << 20, 2 << 20)


@pytest.mark.xfail(reason="L038: a walk takes a bounded number of steps", strict=True)
def test_many_links_with_long_targets_can_be_followed(caller: Caller) -> None:
    for number in range(10):
        there = b"./" * 2000 + b"link%d" % (number + 1)
        caller.ok("symlinkat", there, -100, b"/tmp/link%d" % number)
    caller.ok("mkdirat", -100, b"/tmp/link10", 0o755)
    caller.ok("chdir", b"/tmp/link0")
