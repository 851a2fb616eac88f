"""Which build gets a free slot."""

from __future__ import annotations

import threading
import time

from userland.builder.slots import Slots, Turns


def test_of_builds_that_become_ready_together_the_longest_chain_begins_first() -> None:
    needs = {"base": set[str](), "light": {"base"}, "heavy": {"base"}}
    slots = Slots(1, needs, {"base": 9, "light": 1, "heavy": 5})
    for name in needs:
        slots.fetched(name)
    slots.take("base")
    began = []

    def build_light() -> None:
        slots.take("light")
        began.append("light")

    # It asks before the other one does.
    light = threading.Thread(target=build_light)
    light.start()
    slots.built("base")
    slots.take("heavy")
    began.append("heavy")
    slots.built("heavy")
    light.join()
    assert began == ["heavy", "light"]


def test_a_build_whose_source_is_not_there_holds_nothing_up() -> None:
    slots = Slots(1, {"light": set(), "heavy": set()}, {"light": 1, "heavy": 5})
    slots.fetched("light")
    slots.take("light")
    slots.built("light")
    slots.fetched("heavy")
    slots.take("heavy")


def test_a_failed_build_gives_its_slot_back() -> None:
    slots = Slots(1, {"broken": set(), "other": set()}, {"broken": 5, "other": 1})
    for name in ("broken", "other"):
        slots.fetched(name)
    slots.take("broken")
    slots.failed("broken")
    slots.take("other")


def test_of_sources_that_wait_the_one_of_the_longest_chain_is_fetched_next() -> None:
    turns = Turns({"first": 0, "light": 1, "heavy": 5})
    fetched = []

    def fetch(name: str) -> None:
        with turns.turn(name):
            fetched.append(name)

    threads = [threading.Thread(target=fetch, args=[name]) for name in ("light", "heavy")]
    with turns.turn("first"):
        for thread in threads:
            thread.start()
        while turns.waiting < len(threads):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert fetched == ["heavy", "light"]
