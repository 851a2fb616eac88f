"""The ledger accounts for all memory that guests hold, and the limit holds.

Each attack runs in a host process of its own with a limit of 64 MiB. The ledger is compared with
that process's resident memory. The slack is for memory that belongs to no guest: the interpreter's
own allocations, idle threads, and freed memory that the C library keeps.
"""

from __future__ import annotations

import sys

import pytest

from tests.limits.memory_attacks import ATTACKS, LIMIT, MIB, measure

pytestmark = [
    pytest.mark.no_userland,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

FACTOR = 1.25
"""Resident memory is at most this multiple of what the ledger says."""
SLACK = 32 * MIB
TRANSIENT = 4
"""For a tick or one instruction, guests can hold this multiple of the limit (see `Ledger`)."""
STACK = 16 * MIB
"""Added for the C stack of each computing guest; ticks keep deep call stacks smaller."""
NEVER_REST = frozenset(
    {
        "exec of itself for ever",
        "children that are killed at once",
        "recursion without end",
    }
)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_ledger_matches_the_hosts_memory_and_the_limit_holds(name: str) -> None:
    measured = measure(name)
    assert measured.started >= 1
    stacks = ATTACKS[name].copies * STACK if "stack" in name or "recursion" in name else 0
    assert measured.peak_resident <= TRANSIENT * LIMIT + stacks + SLACK
    if name not in NEVER_REST:
        assert measured.used <= LIMIT
        assert measured.resident <= FACTOR * measured.used + SLACK
    assert measured.left == 0
    assert measured.left_resident <= SLACK
