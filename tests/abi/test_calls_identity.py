"""User and group ids."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller
from wasmsand.kernel.errno import Errno

ALL_ONES = 0xFFFF_FFFF


def uids(caller: Caller) -> tuple[int, ...]:
    address = caller.room(12)
    caller.ok("getresuid", address, address + 4, address + 8)
    return caller.unpack("3I", address)


def gids(caller: Caller) -> tuple[int, ...]:
    address = caller.room(12)
    caller.ok("getresgid", address, address + 4, address + 8)
    return caller.unpack("3I", address)


@pytest.mark.syscalls("getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid")
def test_a_process_reads_its_ids(root: Caller) -> None:
    root.ok("setresgid", 4, 5, 6)
    root.ok("setresuid", 1, 2, 3)
    assert (root.ok("getuid"), root.ok("geteuid")) == (1, 2)
    assert (root.ok("getgid"), root.ok("getegid")) == (4, 5)
    assert (uids(root), gids(root)) == ((1, 2, 3), (4, 5, 6))
    for name in ("getresuid", "getresgid"):
        assert root.errno(name, len(root.space) - 3, 0, 0) is Errno.EFAULT


@pytest.mark.syscalls("setuid", "setgid")
def test_root_gives_itself_up_for_good(root: Caller) -> None:
    root.ok("setgid", 1000)
    root.ok("setuid", 1000)
    assert (uids(root), gids(root)) == ((1000,) * 3, (1000,) * 3)
    assert root.errno("setuid", 0) is Errno.EPERM
    assert root.errno("setgid", 0) is Errno.EPERM
    root.ok("setuid", 1000)


@pytest.mark.syscalls("setuid", "setgid")
def test_minus_one_is_not_an_id(root: Caller, caller: Caller) -> None:
    for process in (root, caller):
        assert process.errno("setuid", ALL_ONES) is Errno.EINVAL
        assert process.errno("setgid", ALL_ONES) is Errno.EINVAL


def test_ids_use_all_32_bits(root: Caller) -> None:
    root.ok("setresuid", 0x8000_0000, ALL_ONES, 0xFFFF_FFFE)
    assert uids(root) == (0x8000_0000, 0, 0xFFFF_FFFE)
    assert root.call("getuid") & ALL_ONES == 0x8000_0000


@pytest.mark.syscalls("setresuid", "setresgid")
def test_a_user_moves_only_among_its_own_ids(root: Caller) -> None:
    root.ok("setresgid", 1, 2, 3)
    root.ok("setresuid", 1, 2, 3)
    root.ok("setresuid", ALL_ONES, 3, 1)
    assert uids(root) == (1, 3, 1)
    assert root.errno("setresuid", ALL_ONES, 0, ALL_ONES) is Errno.EPERM
    root.ok("setresgid", 3, 1, ALL_ONES)
    assert gids(root) == (3, 1, 3)
    assert root.errno("setresgid", 0, ALL_ONES, ALL_ONES) is Errno.EPERM


@pytest.mark.syscalls("setreuid", "setregid")
def test_setreuid_saves_the_effective_id(root: Caller) -> None:
    root.ok("setregid", 7, ALL_ONES)
    assert gids(root) == (7, 0, 0)
    root.ok("setregid", ALL_ONES, 8)
    assert gids(root) == (7, 8, 8)
    root.ok("setreuid", 5, 6)
    assert uids(root) == (5, 6, 6)
    root.ok("setreuid", 6, 5)
    assert uids(root) == (6, 5, 5)
    assert root.errno("setreuid", 0, ALL_ONES) is Errno.EPERM
    assert root.errno("setregid", 0, ALL_ONES) is Errno.EPERM


@pytest.mark.syscalls("getgroups", "setgroups")
def test_groups(root: Caller, caller: Caller) -> None:
    root.ok("setgroups", 3, root.pack("3I", 30, 10, 20))
    address = root.room(12)
    assert root.ok("getgroups", 0, 0) == 3
    assert root.ok("getgroups", 100, address) == 3
    assert root.unpack("3I", address) == (10, 20, 30)
    assert root.errno("getgroups", 2, address) is Errno.EINVAL
    assert root.errno("getgroups", -1, address) is Errno.EINVAL
    assert root.errno("setgroups", 1 << 20, address) is Errno.EINVAL
    assert root.errno("setgroups", 4, len(root.space) - 12) is Errno.EFAULT
    before = bytes(root.space[-8:])
    assert root.errno("getgroups", 3, len(root.space) - 8) is Errno.EFAULT
    assert root.space[-8:] == before
    assert caller.errno("setgroups", 0, 0) is Errno.EPERM
