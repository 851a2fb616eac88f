"""Epolls that watch each other: what Linux refuses, and that no call walks every path.

The errors are those of Linux 6.18, observed with Python's `select.epoll`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import pytest

from tests.kernel.system import System, errno_of
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.epoll import EPOLLET, EPOLLONESHOT, EpollFile
from wasmsand.kernel.files.event import EventFile
from wasmsand.kernel.files.polling import poll
from wasmsand.kernel.flags import POLLIN
from wasmsand.kernel.limits import EPOLL_NESTS_MAX, EPOLL_WATCHES_MAX
from wasmsand.kernel.wait import WaitQueue

pytestmark = pytest.mark.needs_sources

ONE = (1).to_bytes(8, "little")
FAN = 4
"""The number of epolls in a layer; each watches all of the next layer."""


class Counted(EventFile):
    """A file that counts how often it is polled."""

    __slots__ = ()
    asked: ClassVar[int] = 0

    def poll(self) -> int:
        Counted.asked += 1
        return super().poll()


def new(system: System) -> EpollFile:
    kernel = system.kernel
    file = EpollFile(kernel.anonymous.new(0o600), kernel.watches)
    file.references = 1
    return file


def event(system: System, count: int = 0) -> EventFile:
    file = Counted(count, 0, system.kernel.anonymous.new(0o600), semaphore=False)
    file.references = 1
    return file


def ready(epoll: EpollFile) -> list[tuple[int, int]]:
    return epoll.wait(64, now=0, deadline=0)


def watch(above: EpollFile, below: EpollFile | EventFile, fd: int = 3, events: int = 1) -> None:
    above.add(fd, below, events, fd)


def layers(system: System, count: int, width: int) -> list[list[EpollFile]]:
    """Layers of epolls: each epoll watches all of the next layer; the last watches nothing."""
    made = [[new(system) for _ in range(width)] for _ in range(count)]
    for upper, lower in pairwise(made):
        for above in upper:
            for fd, below in enumerate(lower):
                watch(above, below, fd)
    return made


@pytest.mark.parametrize("upwards", [True, False])
def test_a_chain_is_five_long_at_most_whichever_end_grows(system: System, upwards: bool) -> None:
    last = new(system)
    results: list[Errno | None] = []
    for _ in range(3000):
        other = new(system)
        above, below = (other, last) if upwards else (last, other)
        try:
            watch(above, below)
            results.append(None)
        except KernelError as error:
            results.append(error.errno)
        last = other
    assert results == ([None] * EPOLL_NESTS_MAX + [Errno.ELOOP]) * 600


def test_joining_two_chains_counts_both(system: System) -> None:
    def chain(length: int) -> list[EpollFile]:
        made = [new(system) for _ in range(length)]
        for above, below in pairwise(made):
            watch(above, below)
        return made

    upper = chain(3)
    assert errno_of(watch, upper[-1], chain(3)[0]) is Errno.ELOOP
    watch(upper[-1], chain(2)[0])


def test_a_circle_is_refused_through_many_paths(system: System) -> None:
    made = layers(system, 4, 30)
    assert errno_of(watch, made[3][0], made[0][0]) is Errno.ELOOP
    assert errno_of(watch, made[2][0], made[0][29]) is Errno.ELOOP
    assert errno_of(watch, made[0][0], made[0][0]) is Errno.ELOOP


def test_paths_from_a_file_to_the_top_are_counted(system: System) -> None:
    inner, source = new(system), event(system)
    watch(inner, source)
    tops = [new(system) for _ in range(501)]
    for top in tops[:500]:
        watch(top, inner)
    assert errno_of(watch, tops[500], inner) is Errno.EINVAL
    other = event(system)
    watch(inner, other, fd=4)  # it has as many paths as are allowed
    empty = new(system)
    for top in tops:
        watch(top, empty, fd=5)  # nothing could wake them
    assert errno_of(watch, empty, source) is Errno.EINVAL
    tops[0].remove(3, inner)
    assert (
        errno_of(watch, empty, source) is Errno.EINVAL
    )  # 499 paths through the one, 501 through the other


def test_any_number_of_epoll_files_may_watch_a_file_themselves(system: System) -> None:
    source = event(system)
    watchers = [new(system) for _ in range(1500)]
    for epoll in watchers:
        watch(epoll, source)
    source.write(ONE)
    assert all(ready(epoll) for epoll in watchers)


def test_a_call_polls_each_file_once_however_many_paths_lead_to_it(system: System) -> None:
    """Five layers of epolls that fan out: 40^4 paths lead through them."""
    made = layers(system, 5, 40)
    top = new(system)
    for fd, epoll in enumerate(made[0]):
        assert errno_of(watch, top, epoll, fd) is Errno.ELOOP
    assert ready(made[0][0]) == []
    assert errno_of(watch, made[4][0], event(system)) is Errno.EINVAL
    # As many paths as are allowed, with a ready file at the end.
    source = event(system, 1)
    small = layers(system, 3, FAN)
    for epoll in small[2]:
        watch(epoll, source, events=POLLIN | EPOLLET)
    Counted.asked = 0
    for epoll in small[0]:
        assert len(ready(epoll)) == FAN
        assert poll([(epoll, POLLIN)] * 1000, now=0, deadline=0) == [POLLIN] * 1000
    assert Counted.asked < 10_000  # 4 x (4 + 1000), not multiplied by the number of paths
    source.read(8)
    Counted.asked = 0
    for epoll in small[0]:
        assert ready(epoll) == []
        assert poll([(epoll, POLLIN)] * 1000, now=0, deadline=0) == [0] * 1000
    assert Counted.asked <= FAN  # a file that is not ready is polled once


def test_epoll_files_with_nothing_below_wake_nobody(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = layers(system, 4, 40)
    woken = 0
    wake = WaitQueue.wake

    def counted(queue: WaitQueue) -> None:
        nonlocal woken
        woken += 1
        wake(queue)

    monkeypatch.setattr(WaitQueue, "wake", counted)
    watch(made[3][0], new(system), fd=100)
    made[3][0].modify(100, next(iter(made[3][0].inner())), 1, 2)
    assert woken == 0


def test_watches_are_counted_for_the_whole_sandbox(system: System) -> None:
    account = system.kernel.watches
    before = system.kernel.ledger.objects
    first, second, source = new(system), new(system), event(system)
    for fd in range(EPOLL_WATCHES_MAX // 2):
        first.add(fd, source, 1, 0)
        second.add(fd, source, 1, 0)
    assert errno_of(first.add, 9999, source, 1, 0) is Errno.ENOSPC
    second.remove(0, source)
    first.add(9999, source, 1, 0)
    first.dispose()
    assert account.count == EPOLL_WATCHES_MAX // 2 - 1
    source.dispose()
    assert account.count == 0
    assert system.kernel.ledger.objects == before


def test_a_file_that_is_closed_is_no_longer_watched(system: System) -> None:
    epoll, source = new(system), event(system, 1)
    watch(epoll, source)
    assert len(ready(epoll)) == 1
    source.forget()
    assert ready(epoll) == []
    assert errno_of(epoll.remove, 3, source) is Errno.ENOENT
    assert system.kernel.watches.count == 0


def test_a_used_one_shot_watch_is_ready_again_when_modified(system: System) -> None:
    epoll, source = new(system), event(system, 1)
    watch(epoll, source, events=POLLIN | EPOLLONESHOT)
    assert len(ready(epoll)) == 1
    assert ready(epoll) == []
    assert epoll.poll() == 0
    epoll.modify(3, source, POLLIN | EPOLLONESHOT, 3)
    assert len(ready(epoll)) == 1
