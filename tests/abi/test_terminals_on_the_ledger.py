"""A terminal is on the ledger once, and leaves it once, however its sides are closed."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.abi.caller import Sandbox
from wasmsand.abi.context import ProcessEnded

RDWR = 2


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_hang_up_that_ends_processes_gives_the_terminal_back_once(
    sandbox: Sandbox, others: int
) -> None:
    ledger = sandbox.kernel.ledger
    before = ledger.objects + ledger.queued
    first = sandbox.process()
    master = first.open(b"/dev/ptmx", RDWR)
    first.open(b"/dev/pts/0", RDWR)  # which then is the controlling terminal of the session
    for _ in range(others):
        first.fork()
    with suppress(ProcessEnded):
        first.call("close", master)
    with sandbox.lock:
        sandbox.kernel.kill_all()
    assert ledger.objects + ledger.queued == before


def test_a_process_that_ends_while_it_replaces_a_descriptor_keeps_nothing(sandbox: Sandbox) -> None:
    ledger = sandbox.kernel.ledger
    before = ledger.objects + ledger.queued
    first = sandbox.process()
    master = first.open(b"/dev/ptmx", RDWR)
    first.open(b"/dev/pts/0", RDWR)
    reading, writing = first.pipe()
    first.write(writing, b"x" * 1000)
    with pytest.raises(ProcessEnded):
        first.call("dup3", reading, master, 0)
    assert first.process.dead
    with sandbox.lock:
        sandbox.kernel.kill_all()
    assert ledger.objects + ledger.queued == before
