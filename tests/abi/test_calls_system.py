"""The machine as a program sees it."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller, Sandbox
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import Limits

INFINITY = (1 << 64) - 1
FSIZE, NOFILE = 1, 7


@pytest.mark.syscalls("uname", "sethostname")
def test_names_of_the_machine(caller: Caller, root: Caller) -> None:
    address = caller.room(390, 0xAA)
    caller.ok("uname", address)
    fields = [caller.get(address + 65 * i, 65).rstrip(b"\0") for i in range(6)]
    assert (fields[0], fields[1], fields[4]) == (b"Linux", b"sandbox", b"wasm32")
    assert caller.errno("uname", len(caller.space) - 389) is Errno.EFAULT
    assert caller.errno("sethostname", address, 3) is Errno.EPERM
    root.ok("sethostname", root.put(b"other"), 5)
    caller.ok("uname", address)
    assert caller.get(address + 65, 6) == b"other\0"
    assert root.errno("sethostname", root.room(65), 65) is Errno.EINVAL


@pytest.mark.syscalls("sysinfo")
def test_memory_and_uptime(caller: Caller) -> None:
    address = caller.room(64, 0xAA)
    caller.ok("sysinfo", address)
    uptime, _, _, _, total, free = caller.unpack("i3I2I", address)
    processes, _, _, _, unit = caller.unpack("HHIII", address + 40)
    assert 0 <= uptime < 1000
    assert (total * unit, processes) == (1 << 30, 2)
    assert 0 < free <= total
    assert caller.errno("sysinfo", len(caller.space) - 63) is Errno.EFAULT


@pytest.mark.syscalls("getrandom")
def test_random_bytes(caller: Caller) -> None:
    first, second = caller.room(64), caller.room(64)
    assert caller.ok("getrandom", first, 32, 0) == 32
    assert caller.ok("getrandom", second, 32, 1) == 32
    assert caller.get(first, 32) != caller.get(second, 32)
    assert caller.get(first + 32, 32) == bytes(32)
    assert caller.errno("getrandom", first, 1, 8) is Errno.EINVAL
    assert caller.errno("getrandom", len(caller.space) - 3, 4, 0) is Errno.EFAULT
    assert caller.errno("getrandom", 1, 0xFFFF_FFFF, 0) is Errno.EFAULT


@pytest.mark.syscalls("prlimit64")
def test_limits_are_read_and_set(caller: Caller) -> None:
    old = caller.room(16)
    caller.ok("prlimit64", 0, FSIZE, 0, old)
    assert caller.unpack("QQ", old) == (INFINITY, INFINITY)
    caller.ok("prlimit64", 0, FSIZE, caller.pack("QQ", 5, 10), old)
    caller.ok("prlimit64", caller.process.pid, FSIZE, 0, old)
    assert caller.unpack("QQ", old) == (5, 10)
    for new, errno in (((11, 10), Errno.EINVAL), ((5, 11), Errno.EPERM)):
        assert caller.errno("prlimit64", 0, FSIZE, caller.pack("QQ", *new), 0) is errno
    assert caller.errno("prlimit64", 0, 16, 0, old) is Errno.EINVAL
    assert caller.errno("prlimit64", 9999, FSIZE, 0, old) is Errno.ESRCH
    assert caller.errno("prlimit64", 1, FSIZE, 0, old) is Errno.EPERM
    assert caller.errno("prlimit64", 0, FSIZE, 0, len(caller.space) - 15) is Errno.EFAULT


def test_the_limit_of_fds_takes_effect_at_once(caller: Caller) -> None:
    caller.ok("prlimit64", 0, NOFILE, caller.pack("QQ", 1, 10), 0)
    caller.open(b"/dev/null", 0)
    assert caller.errno("dup", 0) is Errno.EMFILE
    child = caller.fork()
    assert child.errno("dup", 0) is Errno.EMFILE
    caller.ok("prlimit64", 0, NOFILE, caller.pack("QQ", 10, 10), 0)
    caller.ok("dup", 0)


def test_no_limit_can_be_raised_above_the_sandboxs() -> None:
    root = Sandbox(Limits(max_open_files=10)).process(uid=0)
    assert root.errno("prlimit64", 0, NOFILE, root.pack("QQ", 11, 11), 0) is Errno.EPERM


@pytest.mark.syscalls("getrusage")
def test_usage(caller: Caller) -> None:
    address = caller.room(72, 0xAA)
    for who in (0, -1, 1):
        caller.ok("getrusage", who, address)
        fields = caller.unpack("18i", address)
        assert all(value >= 0 for value in fields)
        assert fields[5:] == (0,) * 13
    assert caller.errno("getrusage", 2, address) is Errno.EINVAL
    assert caller.errno("getrusage", 0, len(caller.space) - 71) is Errno.EFAULT
