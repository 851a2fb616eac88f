"""Resource limits, and which processes may change them."""

from __future__ import annotations

from functools import partial

import pytest

from tests.kernel.system import errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.rlimits import (
    COUNT,
    FSIZE,
    INFINITY,
    NOFILE,
    NPROC,
    Limit,
    ResourceLimits,
)


@pytest.fixture
def limits() -> ResourceLimits:
    return ResourceLimits.of_sandbox(Limits(max_processes=10, max_open_files=20))


def test_the_sandboxs_limits_are_the_first_rlimits(limits: ResourceLimits) -> None:
    assert limits.get(NPROC) == Limit(10, 10)
    assert limits.get(NOFILE) == Limit(20, 20)
    assert limits.get(FSIZE) == Limit(INFINITY, INFINITY)


@pytest.mark.parametrize("resource", [-1, COUNT, 1 << 31])
def test_an_unknown_resource_is_einval(limits: ResourceLimits, resource: int) -> None:
    assert errno_of(lambda: limits.get(resource)) is Errno.EINVAL


def test_a_soft_limit_moves_freely_below_the_hard_one(limits: ResourceLimits) -> None:
    limits.set(FSIZE, Limit(5, 100), privileged=False)
    limits.set(FSIZE, Limit(100, 100), privileged=False)
    assert errno_of(lambda: limits.set(FSIZE, Limit(101, 100), privileged=True)) is Errno.EINVAL


def test_only_root_raises_a_hard_limit(limits: ResourceLimits) -> None:
    limits.set(FSIZE, Limit(5, 10), privileged=False)
    assert errno_of(lambda: limits.set(FSIZE, Limit(5, 11), privileged=False)) is Errno.EPERM
    limits.set(FSIZE, Limit(5, 11), privileged=True)


def test_not_even_root_exceeds_the_sandbox(limits: ResourceLimits) -> None:
    for resource in (NOFILE, NPROC):
        raising = partial(limits.set, privileged=True)
        assert errno_of(raising, resource, Limit(5, 21)) is Errno.EPERM


def test_a_childs_limits_are_its_own(limits: ResourceLimits) -> None:
    child = limits.copy()
    child.set(FSIZE, Limit(1, 1), privileged=False)
    assert (limits.file_size, child.file_size) == (INFINITY, 1)
