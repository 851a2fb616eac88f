"""When a host prepares a program again, and which image programs start from meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engine.guests import program
from tests.engine.hosts import load
from wasmsand.engine.abilities import MemoryImage
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.machine import renewal
from wasmsand.machine.renewal import (
    FIRST_AFTER_BYTES,
    FIRST_AFTER_SECONDS,
    IMAGES_MAX,
    RENEWED_AFTER_COSTS,
    RENEWED_AFTER_SECONDS,
    PreparedMemories,
    Renewal,
)

pytestmark = pytest.mark.no_userland
A_LITTLE = 0.01


class Host:
    """A host whose clock the test moves, and whose threads run when the test says so."""

    def __init__(self, engine: WasmtimeEngine) -> None:
        self.engine = engine
        self.now = 1000.0
        self.begun: list[Callable[[], None]] = []
        self.failure: Exception | None = None
        self.seconds = 0.0
        """What a preparation takes."""
        self.stored = self.prepare()
        self.renewal = Renewal(self.stored, self.prepare, self.begun.append, lambda: self.now)

    def prepare(self) -> MemoryImage:
        if self.failure is not None:
            raise self.failure
        self.now += self.seconds
        instance = load(self.engine, program("")).instantiate(1 << 20)
        try:
            return instance.capture(stack=False)
        finally:
            instance.close()

    def start_after(self, seconds: float) -> MemoryImage:
        """Start a program that long after the last one; returns the image it starts from."""
        self.now += seconds
        return self.renewal.newest()

    def finish(self) -> None:
        """Let the preparation in progress end."""
        (job,) = self.begun
        self.begun.clear()
        job()

    def first(self) -> MemoryImage:
        """The first image of this host."""
        self.start_after(0)
        self.start_after(FIRST_AFTER_SECONDS)
        self.finish()
        image = self.renewal.newest()
        assert image is not self.stored
        return image


@pytest.fixture
def host(engine: WasmtimeEngine) -> Host:
    return Host(engine)


def test_a_host_that_starts_a_few_programs_at_once_prepares_nothing(host: Host) -> None:
    for _ in range(5):
        assert host.start_after(FIRST_AFTER_SECONDS / 10) is host.stored
    assert host.begun == []


def test_a_later_start_has_the_first_one_made_and_does_not_wait(host: Host) -> None:
    host.start_after(0)
    assert host.start_after(FIRST_AFTER_SECONDS) is host.stored
    assert len(host.begun) == 1
    host.finish()
    assert host.start_after(A_LITTLE) is not host.stored


def test_the_first_preparation_of_a_large_program_comes_later(host: Host) -> None:
    host.stored.size = 5 * FIRST_AFTER_BYTES
    host.start_after(0)
    host.start_after(5 * FIRST_AFTER_SECONDS - A_LITTLE)
    assert host.begun == []
    host.start_after(A_LITTLE)
    assert len(host.begun) == 1


def test_a_program_that_takes_long_to_prepare_is_prepared_less_often(host: Host) -> None:
    host.seconds = 3.0
    host.first()
    host.start_after(RENEWED_AFTER_COSTS * 3.0 - A_LITTLE)
    assert host.begun == []
    host.start_after(2 * A_LITTLE)
    assert len(host.begun) == 1


def test_starts_share_an_image_until_it_is_old_and_its_successor_is_made(host: Host) -> None:
    first = host.first()
    assert host.start_after(RENEWED_AFTER_SECONDS - A_LITTLE) is first
    assert host.begun == []
    assert host.start_after(2 * A_LITTLE) is first
    host.finish()
    second = host.start_after(A_LITTLE)
    assert second is not first


def test_one_preparation_is_under_way_at_a_time(host: Host) -> None:
    host.first()
    for _ in range(3):
        host.start_after(2 * RENEWED_AFTER_SECONDS)
    assert len(host.begun) == 1


def test_an_idle_host_prepares_nothing(host: Host) -> None:
    host.first()
    host.now += 100 * RENEWED_AFTER_SECONDS
    assert host.begun == []


def test_few_images_are_in_use_at_once(host: Host) -> None:
    held = [host.first()]
    while len(held) < IMAGES_MAX:
        host.start_after(RENEWED_AFTER_SECONDS)
        host.finish()
        image = host.renewal.newest()
        held.append(image)
    assert host.start_after(RENEWED_AFTER_SECONDS) is held[-1]
    assert host.begun == []
    del held[0], image
    assert host.start_after(RENEWED_AFTER_SECONDS) is held[-1]
    assert len(host.begun) == 1


@pytest.mark.parametrize("failure", [OSError("no such files here"), ValueError("a bug")])
def test_after_a_failure_programs_start_from_the_old_image(host: Host, failure: Exception) -> None:
    first = host.first()
    host.failure = failure
    host.start_after(RENEWED_AFTER_SECONDS)
    host.finish()
    assert host.start_after(RENEWED_AFTER_SECONDS) is first
    assert host.begun == []


def test_the_environment_can_turn_renewal_off(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = host.first()
    memories = PreparedMemories(host.engine)
    memories._known["key"] = host.renewal
    monkeypatch.setenv(renewal.VARIABLE, "off")
    assert memories.find("key") is memories.load("key") is host.stored
    monkeypatch.delenv(renewal.VARIABLE)
    assert memories.find("key") is memories.load("key") is newest


def test_a_host_without_threads_starts_programs_as_before_and_tries_later(host: Host) -> None:
    now, tries = 1000.0, 0

    def no_thread(job: Callable[[], None]) -> None:
        nonlocal tries
        tries += 1
        raise RuntimeError("can't start new thread")

    def prepare() -> MemoryImage:
        raise AssertionError("nothing runs it")

    refused = Renewal(host.stored, prepare, no_thread, lambda: now)
    assert refused.newest() is host.stored
    now += FIRST_AFTER_SECONDS
    assert refused.newest() is host.stored
    assert refused.newest() is host.stored
    assert tries == 1
    now += RENEWED_AFTER_SECONDS
    assert refused.newest() is host.stored
    assert tries == 2
