"""Evidence for rows of docs/limitations.md that system calls show."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller
from wasmsand.abi.linux.table import HANDLERS
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import F_SETLK64, F_SETLKW64, O_RDWR

F_WRLCK = 1


@pytest.mark.xfail(reason="L009: there are no POSIX timers", strict=True)
def test_a_posix_timer_can_be_made(caller: Caller) -> None:
    assert 107 in HANDLERS, "timer_create"


@pytest.mark.xfail(reason="L011: set-user-id bits do nothing on exec", strict=True)
def test_a_set_user_id_program_runs_as_its_owner(caller: Caller, root: Caller) -> None:
    program = root.make_file(b"/usr/bin/owner", b"\0asm\1\0\0\0", 0o755)
    root.ok("fchmodat", -100, program, 0o4755)
    child = caller.fork()
    child.call("execve", program, child.strings(b"owner"), child.strings())
    assert child.process.identity.euid == 0


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
