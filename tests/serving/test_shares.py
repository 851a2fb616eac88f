"""A fair division among tenants."""

from __future__ import annotations

import random

import pytest

from wasmsand.serving.shares import Shares

pytestmark = pytest.mark.no_userland


def test_one_tenant_alone_can_have_everything() -> None:
    shares = Shares(5, 1)
    assert [shares.take("a") for _ in range(6)] == [True] * 5 + [False]
    shares.give("a", 5)
    assert shares.take("a", 5)


def test_greedy_tenants_leave_every_other_tenant_its_share() -> None:
    shares = Shares(100, 5)
    for tenant in ("a", "b", "c", "d"):
        while shares.take(tenant):
            pass
    assert [shares.take("e") for _ in range(11)] == [True] * 10 + [False]
    assert shares.total_held == 100


def test_no_tenant_has_more_than_the_most() -> None:
    shares = Shares(100, 2, most=30)
    assert shares.take("a", 30)
    assert not shares.take("a")
    assert shares.is_at_most("a")
    assert not shares.is_at_most("b")


def test_many_tenants_have_one_each() -> None:
    shares = Shares(4, 50)
    assert all(shares.take(f"t{number}") for number in range(50))


def test_returned_shares_can_be_taken_again() -> None:
    shares = Shares(40, 4)
    held = dict.fromkeys("abcd", 0)
    generator = random.Random(7)
    for _ in range(5000):
        tenant, amount = generator.choice("abcd"), generator.randint(1, 4)
        if generator.random() < 0.5 and held[tenant] >= amount:
            shares.give(tenant, amount)
            held[tenant] -= amount
        elif shares.take(tenant, amount):
            held[tenant] += amount
        assert shares.total_held == sum(held.values()) <= 40
        assert all(shares.held(name) == count for name, count in held.items())
    for tenant, count in held.items():
        if count:
            shares.give(tenant, count)
    assert shares.take("a", shares.most)
