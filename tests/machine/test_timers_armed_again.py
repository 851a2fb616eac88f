"""A timer that is armed repeatedly takes the memory of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from wasmsand.machine.timers import TimerService

pytestmark = pytest.mark.no_userland

FAR_NS = 3600 * 10**9


class Owner:
    """An owner that is never due."""

    def fire_timers(self) -> int | None:
        return None


def start_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()


@pytest.mark.parametrize("step", [1, -1], ids=["later", "earlier"])
def test_one_owner_has_a_bounded_number_of_entries(step: int) -> None:
    service = TimerService(start_thread)
    owner = Owner()
    far = time.monotonic_ns() + FAR_NS
    for number in range(20_000):
        service.arm(owner, far + step * number)
    assert service.entries < 100
    service.cancel(owner)


def test_owners_that_are_gone_leave_no_entries() -> None:
    service = TimerService(start_thread)
    far = time.monotonic_ns() + FAR_NS
    for number in range(20_000):
        service.arm(Owner(), far + number)
    assert service.entries < 100
