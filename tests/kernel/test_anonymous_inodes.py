"""Objects outside of file systems have inode numbers of their sandbox."""

from __future__ import annotations

from tests.kernel.system import System
from wasmsand.kernel.flags import S_IFIFO


def numbers(system: System, count: int) -> list[int]:
    return [system.kernel.anonymous.new(S_IFIFO | 0o600).ino for _ in range(count)]


def test_no_two_objects_of_a_sandbox_have_the_same_number() -> None:
    assert len(set(numbers(System(), 100))) == 100


def test_a_guest_does_not_see_from_its_numbers_what_other_sandboxes_do() -> None:
    alone = numbers(System(), 3)
    busy, watched = System(), System()
    seen = []
    for _ in range(3):
        numbers(busy, 7)
        seen += numbers(watched, 1)
    assert seen == alone
