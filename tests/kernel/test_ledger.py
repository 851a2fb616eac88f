"""The ledger of a sandbox's memory: shares, ended programs, freed memory."""

from __future__ import annotations

import pytest

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import GROWTH_BYTES_MIN, GROWTH_PARTS
from wasmsand.kernel.process.memory import MemoryAccount

MIB = 1 << 20
LIMIT = 64 * MIB


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(LIMIT)


def computing(ledger: Ledger, count: int) -> list[MemoryAccount]:
    accounts = [MemoryAccount(ledger, MIB, 0) for _ in range(count)]
    for account in accounts:
        account.take_share()
    return accounts


def test_a_computing_program_may_take_all_memory(ledger: Ledger) -> None:
    (account,) = computing(ledger, 1)
    assert account.share == ledger.room == LIMIT - MIB


def test_the_parent_of_a_program_does_not_keep_it_from_growing(ledger: Ledger) -> None:
    parent, child = computing(ledger, 2)
    assert parent.share == child.share == ledger.room


@pytest.mark.parametrize("count", [3, 10, 60])
def test_used_and_shared_memory_is_at_most_four_times_the_limit_and_the_smallest_shares(
    ledger: Ledger, count: int
) -> None:
    smallest = max(GROWTH_BYTES_MIN, LIMIT // GROWTH_PARTS)
    accounts = computing(ledger, count)
    for _ in range(20):
        for account in accounts:
            account.take_share()
            assert account.share <= LIMIT
            assert ledger.used + ledger.shared <= 4 * LIMIT + count * smallest
    # Nobody is left without memory because others hold more than they need.
    assert all(account.share >= min(smallest, ledger.room) for account in accounts)


def test_shares_of_a_crowd_become_even(ledger: Ledger) -> None:
    accounts = computing(ledger, 8)
    for _ in range(20):
        for account in accounts:
            account.take_share()
    shares = [account.share for account in accounts]
    assert max(shares) < 1.2 * min(shares)
    assert min(shares) > GROWTH_BYTES_MIN


def test_a_program_that_keeps_growing_by_its_share_stays_within_the_bound(ledger: Ledger) -> None:
    _, greedy = computing(ledger, 2)
    for _ in range(100):
        greedy.set_guest(greedy.guest + greedy.share)
        greedy.take_share()
        assert ledger.used + ledger.shared <= 4 * LIMIT
    assert ledger.used <= LIMIT
    assert greedy.share == 0


def test_a_waiting_program_has_no_share(ledger: Ledger) -> None:
    first, second = computing(ledger, 2)
    first.give_share()
    first.give_share()
    assert ledger.shared == second.share


def test_memory_of_an_ended_process_is_counted_until_it_is_freed(ledger: Ledger) -> None:
    account = MemoryAccount(ledger, 60 * MIB, MIB)
    account.owner_left()
    assert (ledger.used, ledger.dying, ledger.room) == (61 * MIB, 61 * MIB, LIMIT)
    account.set_guest(62 * MIB)
    assert ledger.dying == 63 * MIB
    ledger.require_program(60 * MIB)
    second = MemoryAccount(ledger, 60 * MIB, 0)
    second.owner_left()
    with pytest.raises(KernelError) as refused:
        ledger.require_program(10 * MIB)
    assert refused.value.errno is Errno.ENOMEM
    assert MemoryAccount(ledger, MIB, 0).take_share() < 5 * MIB
    account.user_left()
    ledger.require_program(10 * MIB)


def test_memory_is_dying_only_when_the_last_process_in_it_has_ended(ledger: Ledger) -> None:
    account = MemoryAccount(ledger, 10 * MIB, 0)
    account.owner_came()  # vfork
    account.owner_left()
    assert ledger.dying == 0
    account.owner_left()
    assert ledger.dying == 10 * MIB


@pytest.mark.parametrize("told", [True, False])
def test_an_account_leaves_nothing(ledger: Ledger, told: bool) -> None:
    account = MemoryAccount(ledger, 10 * MIB, MIB)
    account.user_came()
    account.add_engine(MIB)
    account.take_share()
    if told:
        account.owner_left()
    account.user_left()
    assert ledger.used == 12 * MIB
    account.user_left()
    assert (ledger.used, ledger.dying, ledger.shared) == (0, 0, 0)
    assert ledger.peak == 12 * MIB


def test_a_program_that_replaces_another_needs_only_the_difference(
    ledger: Ledger,
) -> None:
    MemoryAccount(ledger, 60 * MIB, 0)
    ledger.require_program(62 * MIB, replaced=60 * MIB)
    with pytest.raises(KernelError):
        ledger.require_program(62 * MIB)
