"""Gates: what one thread waits for, and a signal handler may interrupt."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

import pytest

from tests.waiting import PATIENCE
from wasmsand.wire.gate import ResponseGate


def test_a_closed_gate_is_waited_at_for_the_given_time() -> None:
    assert not ResponseGate().wait(0.01)


def test_an_open_gate_stays_open() -> None:
    gate = ResponseGate()
    gate.open()
    gate.open()
    assert gate.wait()
    assert gate.wait(0)


def test_a_thread_that_waits_passes_when_the_gate_is_opened() -> None:
    gate = ResponseGate()
    threading.Timer(0.05, gate.open).start()
    assert gate.wait(PATIENCE)


def test_an_exception_of_a_signal_handler_leaves_the_gate_intact() -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for turn in range(200):
            gate = ResponseGate()
            opener = threading.Thread(target=gate.open)
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + turn * 1e-6)
                while not gate.wait(0.00005):
                    pass
                time.sleep(PATIENCE)
            opener.start()
            assert gate.wait(PATIENCE)
            opener.join(PATIENCE)
    finally:
        signal.signal(signal.SIGALRM, before)
