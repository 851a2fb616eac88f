"""`AsyncSandbox`: what differs from `Sandbox`: tasks, cancellation, the event loop."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.sdk.backends import server
from wasmsand import (
    AsyncSandbox,
    AsyncSandboxPool,
    CommandError,
    NotFoundError,
    Sandbox,
    SandboxClosedError,
)
from wasmsand.sdk import async_sandbox


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))


async def opened(way: str) -> AsyncSandbox:
    if way == "http":
        url, token = server()
        return await AsyncSandbox.connect(url, token=token)
    return await AsyncSandbox.create(isolation="process" if way == "process" else "none")


async def processes(sandbox: AsyncSandbox) -> int:
    return len(await sandbox.commands.list())


def test_the_event_loop_runs_while_a_command_runs() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            command = asyncio.create_task(sandbox.commands.run("sleep 0.5; echo done"))
            turns = 0
            while not command.done():
                await asyncio.sleep(0.01)
                turns += 1
            assert turns > 10
            assert command.result().stdout == "done\n"

    run(main())


def test_many_commands_at_once() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            results = await asyncio.gather(
                *(sandbox.commands.run(f"sleep 0.3; echo {number}") for number in range(20))
            )
            assert [result.stdout for result in results] == [f"{n}\n" for n in range(20)]

    started = time.monotonic()
    run(main())
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", ["local", "process", "http"])
def test_cancelling_a_task_ends_its_command(way: str, streamed: bool) -> None:
    async def main() -> None:
        async with await opened(way) as sandbox:
            sink = (lambda text: None) if streamed else None
            task = asyncio.create_task(sandbox.commands.run("sleep 60 & sleep 60", on_stdout=sink))
            while await processes(sandbox) < 3:
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            if way == "http":  # the server notices it with a delay
                deadline = time.monotonic() + 10
                while await processes(sandbox) and time.monotonic() < deadline:
                    await asyncio.sleep(0.05)
            assert await processes(sandbox) == 0
            assert (await sandbox.commands.run("echo works on")).stdout == "works on\n"

    run(main())


def test_a_time_limit_of_asyncio_ends_the_command() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await sandbox.commands.run("while :; do :; done")
            assert await processes(sandbox) == 0

    run(main())


def test_a_task_that_is_cancelled_at_once_leaves_nothing() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            for start in (sandbox.commands.run, sandbox.commands.start):
                task = asyncio.create_task(start("sleep 60"))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await asyncio.sleep(0.3)  # before that they may not have been started
            deadline = time.monotonic() + 10
            while await processes(sandbox) and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            assert await processes(sandbox) == 0

    run(main())


@pytest.mark.parametrize("way", ["local", "process", "http"])
def test_cancelling_a_command_of_a_shell_leaves_the_shell(way: str) -> None:
    async def main() -> None:
        async with await opened(way) as sandbox, await sandbox.shell() as shell:
            await shell.run("x=kept")
            task = asyncio.create_task(shell.run("sleep 60; echo after"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await shell.run("echo $x")).stdout == "kept\n"

    run(main())


def test_a_cancelled_wait_leaves_the_command_and_its_output() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            command = await sandbox.commands.start("echo first; read; echo second")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(command.wait(), 0.3)
            await command.write_stdin("\n")
            assert (await command.wait()).stdout == "first\nsecond\n"

    run(main())


def test_a_cancelled_iteration_loses_nothing() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            command = await sandbox.commands.start("for i in 1 2 3; do read; echo $i; done")
            seen = ""
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(aiter(command)), 0.1)
                await command.write_stdin("\n")
                seen += (await anext(aiter(command))).text
            assert seen == "1\n2\n3\n"

    run(main())


def test_callbacks_run_in_the_loop_and_may_be_coroutines() -> None:
    async def main() -> None:
        threads: list[threading.Thread] = []
        seen: list[str] = []

        async def later(text: str) -> None:
            await asyncio.sleep(0)
            seen.append(text)

        async with AsyncSandbox() as sandbox:
            result = await sandbox.commands.run(
                "echo out; echo err >&2",
                on_stdout=lambda _: threads.append(threading.current_thread()),
                on_stderr=later,
            )
            assert result.stdout == "out\n"
            assert seen == ["err\n"]
            assert set(threads) == {threading.main_thread()}

            def fail(_: str) -> None:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await sandbox.commands.run("echo hi; sleep 60", on_stdout=fail)
            assert await processes(sandbox) == 0

    run(main())


def test_streams_and_their_errors() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("a", b"x" * 2500)
            pieces = [piece async for piece in sandbox.files.read_stream("a", chunk_size=1000)]
            assert [len(piece) for piece in pieces] == [1000, 1000, 500]
            with pytest.raises(NotFoundError):
                async for _ in sandbox.files.read_stream("nothing"):
                    pass
            assert b"".join([piece async for piece in sandbox.files.export_tar()])

    run(main())


def test_a_watch_is_an_asynchronous_iterator() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            async with await sandbox.files.watch(interval_ms=20) as watch:
                waiting = asyncio.ensure_future(anext(aiter(watch)))
                await sandbox.files.write("new", "x")
                assert (await waiting).path == "/home/user/new"
                waiting = asyncio.ensure_future(anext(aiter(watch)))
            with pytest.raises(StopAsyncIteration):
                await waiting

    run(main())


def test_a_sandbox_without_a_block() -> None:
    async def main() -> None:
        sandbox = await AsyncSandbox.create(env={"A": "b"})
        assert repr(sandbox) == "<AsyncSandbox cwd='/home/user' timeout_ms=30000>"
        assert sandbox.env.get("A") == "b"
        await sandbox.kill()
        await sandbox.kill()
        with pytest.raises(SandboxClosedError):
            await sandbox.commands.run("true")
        with pytest.raises(SandboxClosedError):
            async with sandbox:
                pass

    run(main())


def test_a_sandbox_that_was_not_entered_says_so() -> None:
    async def main() -> None:
        sandbox = AsyncSandbox()
        assert repr(sandbox) == "<AsyncSandbox not entered>"
        with pytest.raises(RuntimeError, match=r"async with AsyncSandbox\(...\)"):
            _ = sandbox.commands
        with pytest.raises(AttributeError):
            _ = sandbox.comands  # type: ignore[attr-defined]

    run(main())


def test_a_pool_gives_asynchronous_sandboxes() -> None:
    async def main() -> None:
        def setup(sandbox: Sandbox) -> None:
            sandbox.files.write("data", "x")

        async with AsyncSandboxPool(2, setup=setup) as pool, await pool.take() as sandbox:
            assert (await sandbox.commands.run("cat data")).stdout == "x"

    run(main())


def test_errors_are_those_of_the_blocking_api() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            with pytest.raises(CommandError, match=r"^ENOENT: "):
                await sandbox.commands.run(["no-such-program"])
            with pytest.raises(TypeError, match="on_stdout must be callable"):
                await sandbox.commands.run("true", on_stdout=5)  # type: ignore[arg-type]

    run(main())


def test_the_program_can_end_while_a_thread_still_waits() -> None:
    async def main() -> None:
        sandbox = await AsyncSandbox.create()
        command = await sandbox.commands.start("sleep 60")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(command.wait(), 0.1)

    run(main())
    gc.collect()
    waiting = [t for t in threading.enumerate() if t.name == "wasmsand-async"]
    assert all(thread.daemon for thread in waiting)


PAIRS = [
    (getattr(async_sandbox, name), name.removeprefix("Async"))
    for name in (
        "AsyncSandbox",
        "AsyncCommands",
        "AsyncFiles",
        "AsyncCommandHandle",
        "AsyncShell",
        "AsyncFileWatch",
        "AsyncSandboxPool",
    )
]


@pytest.mark.no_userland
@pytest.mark.parametrize(("twin", "name"), PAIRS)
def test_both_apis_have_the_same_methods_and_arguments(twin: type, name: str) -> None:
    blocking = getattr(async_sandbox, name)
    public = [key for key, value in vars(blocking).items() if not key.startswith("_")]
    for key in public:
        ours, theirs = getattr(twin, key), getattr(blocking, key)
        if not callable(theirs):
            continue
        expected = [
            (p.name, p.kind, p.default) for p in inspect.signature(theirs).parameters.values()
        ]
        found = [(p.name, p.kind, p.default) for p in inspect.signature(ours).parameters.values()]
        assert found == expected, key
        assert ours.__doc__, key
