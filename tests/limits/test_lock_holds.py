"""The sandbox's lock is held for bounded work, whatever a guest asks for.

Each test makes a system call with expensive arguments, on a kernel that is full of large objects
(`lock_holds.House`), and compares the longest hold of the lock with a bound. The bound is far above
the usual, but a call whose cost grows with what a guest has accumulated exceeds it by far.
"""

from __future__ import annotations

import pytest

from tests.abi.fuzz.arguments import _SHAPES as SHAPES
from tests.abi.fuzz.wasi_calls import _SHAPES as WASI_SHAPES
from tests.limits.lock_holds import House
from wasmsand.abi.linux.table import SYSTEM_CALLS
from wasmsand.abi.wasi.table import FUNCTIONS, WasiFunction

pytestmark = pytest.mark.needs_sources

BOUND_MS = 60
TRIES = 24
CALLS = [call.name for call in SYSTEM_CALLS if call.function is not None]


@pytest.fixture(scope="module")
def house() -> House:
    return House()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_holds_the_lock_for_bounded_work(house: House, name: str) -> None:
    tries = TRIES // 8 if name in ("execve", "execveat") else TRIES
    longest, words = house.worst(name, SHAPES.get(name, ""), tries)
    assert longest < BOUND_MS * 1_000_000, f"{name}{words}: {longest / 1e6:.1f} ms"


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
def test_a_function_of_wasi_holds_the_lock_for_bounded_work(
    house: House, row: WasiFunction
) -> None:
    longest, words = house.worst_wasi(row, WASI_SHAPES[row.name], TRIES)
    assert longest < BOUND_MS * 1_000_000, f"{row.name}{words}: {longest / 1e6:.1f} ms"
