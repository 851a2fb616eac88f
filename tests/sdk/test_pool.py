"""`SandboxPool`: sandboxes that are ready before they are needed."""

from __future__ import annotations

import threading

import pytest

from tests.waiting import wait_until
from wasmsand import Sandbox, SandboxClosedError, SandboxPool


def wait_until_full(pool: SandboxPool) -> None:
    wait_until(lambda: pool.ready == pool.size)


def test_every_sandbox_is_fresh_and_set_up() -> None:
    with SandboxPool(2, setup=lambda sandbox: sandbox.files.write("data", "x")) as pool:
        wait_until_full(pool)
        with pool.take() as one, pool.take() as two:
            assert one is not two
            one.files.write("mine", "x")
            assert [entry.name for entry in two.files.list()] == ["data"]
        wait_until_full(pool)
        with pool.take() as third:
            assert [entry.name for entry in third.files.list()] == ["data"]


def test_an_empty_pool_makes_one_at_once() -> None:
    with SandboxPool(1) as pool:
        sandboxes = [pool.take() for _ in range(5)]
        assert len({id(sandbox) for sandbox in sandboxes}) == 5
        for sandbox in sandboxes:
            assert sandbox.commands.run("echo hi").stdout == "hi\n"
            sandbox.kill()


def test_options_by_make() -> None:
    with SandboxPool(1, make=lambda: Sandbox(cwd="/srv")) as pool, pool.take() as sandbox:
        assert sandbox.commands.run("pwd").stdout == "/srv\n"


def test_a_failing_setup_is_raised_where_a_sandbox_is_taken() -> None:
    made: list[Sandbox] = []

    def fail(sandbox: Sandbox) -> None:
        made.append(sandbox)
        raise ZeroDivisionError

    with SandboxPool(1, setup=fail) as pool, pytest.raises(ZeroDivisionError):
        pool.take()
    assert all(repr(sandbox) == "<Sandbox killed>" for sandbox in made)


def test_closing_kills_the_sandboxes_that_were_not_taken() -> None:
    pool = SandboxPool(2)
    wait_until_full(pool)
    ready = list(pool._ready)
    taken = pool.take()
    pool.close()
    pool.close()
    with pytest.raises(SandboxClosedError):
        pool.take()
    assert repr(pool) == "<SandboxPool closed>"
    assert repr(ready[1]) == "<Sandbox killed>"
    assert taken.commands.run("echo hi").stdout == "hi\n"
    taken.kill()


def test_an_idle_pool_has_no_thread() -> None:
    with SandboxPool(2) as pool:
        wait_until_full(pool)
        wait_until(
            lambda: all(thread.name != "wasmsand-pool" for thread in threading.enumerate()),
            seconds=5,
        )
