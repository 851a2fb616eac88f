"""Bounded threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from wasmsand.http import workers
from wasmsand.http.workers import PoolFull, Workers

pytestmark = pytest.mark.no_userland


def test_what_a_call_returns_and_raises() -> None:
    async def main() -> None:
        pool = Workers("test", 1, 1)
        assert await pool.run(lambda: threading.current_thread().name) == "wasmsand-test_0"
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 // 0)
        with pytest.raises(TimeoutError):
            await pool.run(_timeout)
        assert pool.taken == 0
        pool.close()

    asyncio.run(main())


def _timeout() -> None:
    raise TimeoutError


def test_a_call_too_many_is_refused_until_one_has_ended() -> None:
    async def main() -> None:
        pool, gate = Workers("test", 1, 1), threading.Event()
        running = asyncio.create_task(pool.run(gate.wait))
        waiting = asyncio.create_task(pool.run(gate.wait))
        await asyncio.sleep(0.05)
        with pytest.raises(PoolFull):
            await pool.run(gate.wait)
        gate.set()
        assert all(await asyncio.gather(running, waiting))
        assert await pool.run(gate.wait)
        pool.close()

    asyncio.run(main())


def test_a_call_that_waits_too_long_for_a_thread_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "QUEUE_SECONDS", 0.1)

    async def main() -> None:
        pool, gate = Workers("test", 1, 1), threading.Event()
        running = asyncio.create_task(pool.run(gate.wait))
        await asyncio.sleep(0.05)
        with pytest.raises(PoolFull):
            await pool.run(gate.wait)
        assert pool.taken == 1
        gate.set()
        assert await running  # which took longer, but had its thread
        pool.close()

    asyncio.run(main())


def test_a_call_that_nobody_waits_for_keeps_its_place_until_it_ends() -> None:
    async def main() -> None:
        pool, gate = Workers("test", 1, 0), threading.Event()
        running = asyncio.create_task(pool.run(gate.wait))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert pool.taken == 1
        gate.set()
        while pool.taken:
            await asyncio.sleep(0.01)
        pool.close()

    asyncio.run(main())
