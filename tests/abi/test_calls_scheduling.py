"""Priorities, policies, processors: what an ordinary user may ask for."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller
from wasmsand.kernel.errno import Errno

OTHER, FIFO, BATCH = 0, 1, 3


@pytest.mark.syscalls("sched_setscheduler", "sched_getscheduler", "sched_setparam",
                      "sched_getparam")  # fmt: skip
def test_ordinary_policies_are_accepted_and_real_time_is_roots(caller: Caller) -> None:
    none, some = caller.pack("i", 0), caller.pack("i", 10)
    assert caller.ok("sched_setscheduler", 0, BATCH, none) == 0
    assert caller.errno("sched_setscheduler", 0, FIFO, some) is Errno.EPERM
    assert caller.errno("sched_setscheduler", 0, FIFO, none) is Errno.EINVAL
    assert caller.errno("sched_setscheduler", 0, 77, none) is Errno.EINVAL
    assert caller.errno("sched_setparam", 0, some) is Errno.EINVAL
    assert caller.ok("sched_setparam", 0, none) == 0
    assert caller.ok("sched_getscheduler", 0) == OTHER
    assert caller.errno("sched_getscheduler", 9999) is Errno.ESRCH
    assert caller.errno("sched_getscheduler", -1) is Errno.EINVAL
    assert caller.ok("sched_getparam", 0, some) == 0
    assert caller.unpack("i", some) == (0,)


@pytest.mark.syscalls("sched_get_priority_max", "sched_get_priority_min",
                      "sched_rr_get_interval_time64", "sched_setaffinity")  # fmt: skip
def test_ranges_slices_and_processors(caller: Caller) -> None:
    assert caller.ok("sched_get_priority_max", FIFO) == 99
    assert caller.ok("sched_get_priority_min", FIFO) == 1
    assert caller.ok("sched_get_priority_max", OTHER) == 0
    assert caller.errno("sched_get_priority_max", 77) is Errno.EINVAL
    at = caller.room(16)
    assert caller.ok("sched_rr_get_interval_time64", 0, at) == 0
    assert caller.unpack("qq", at) == (0, 100_000_000)
    assert caller.errno("sched_setaffinity", 0, 4, caller.pack("I", 0b100)) is Errno.EINVAL
    assert caller.errno("sched_setaffinity", 0, 4, 0xFFFF_FFF0) is Errno.EFAULT


def processors(caller: Caller, pid: int = 0) -> int:
    at = caller.room(4)
    assert caller.ok("sched_getaffinity", pid, 4, at) == 4
    mask: int = caller.unpack("I", at)[0]
    return mask


@pytest.mark.syscalls("sched_setaffinity", "sched_getaffinity")
def test_processors_are_kept_and_inherited(caller: Caller) -> None:
    assert processors(caller) == 0b11
    assert caller.ok("sched_setaffinity", 0, 8, caller.pack("II", 0b110, 1)) == 0
    child = caller.fork()
    assert (processors(caller), processors(child)) == (0b10, 0b10)
    assert caller.ok("sched_setaffinity", child.process.pid, 4, caller.pack("I", 1)) == 0
    assert (processors(caller), processors(child)) == (0b10, 0b01)
    assert processors(caller, child.process.pid) == 0b01
    assert caller.errno("sched_setaffinity", -1, 4, caller.pack("I", 1)) is Errno.ESRCH
