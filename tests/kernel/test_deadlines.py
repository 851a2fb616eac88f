"""Deadlines: one entry per key, and none left behind."""

from __future__ import annotations

from wasmsand.kernel.deadlines import Deadlines


def test_keys_are_due_in_the_order_of_their_times() -> None:
    due: Deadlines[str] = Deadlines()
    for key, when in (("late", 30), ("early", 10), ("second", 20)):
        due.set(key, when)
    assert (due.earliest(), len(due)) == (10, 3)
    assert due.take_due(9) is None
    assert [due.take_due(30) for _ in range(4)] == ["early", "second", "late", None]
    assert due.earliest() is None


def test_a_key_that_is_set_again_has_only_its_new_time() -> None:
    due: Deadlines[str] = Deadlines()
    due.set("a", 10)
    due.set("a", 50)
    due.set("b", 20)
    due.cancel("b")
    due.cancel("never set")
    assert (due.get("a"), due.get("b"), "b" in due) == (50, None, False)
    assert due.take_due(49) is None
    assert due.take_due(50) == "a"
    assert due.take_due(50) is None


def test_outdated_entries_do_not_accumulate() -> None:
    due: Deadlines[int] = Deadlines()
    for number in range(200_000):
        due.set(number % 10, 1_000_000 - number)
        if number % 3 == 0:
            due.cancel(number % 7)
    assert len(due) <= 10
    assert due.entries < 100
