"""What each interface costs: `python -m bench.interfaces`.

Runs the same command, `true`, in this process, in a process of its own, over HTTP and over MCP.
Rules: interfaces take turns, so that a busy machine slows all of them alike; the sandbox exists
before the first measurement and stays; a time is one call as a user makes it; an interface whose
packages are not installed is skipped, with a line that says so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.served import ROOT, served
from wasmsand import Sandbox

Measure = Callable[[], float]
"""Runs the command once; returns the seconds that it took."""

_SCRIPT = "true"


def _timed(run: Callable[[], object]) -> Measure:
    def measure() -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    return measure


def _run_in(sandbox: Sandbox) -> Measure:
    def run() -> None:
        assert sandbox.commands.run(_SCRIPT).exit_code == 0

    return _timed(run)


@contextmanager
def in_process() -> Iterator[Measure]:
    """`Sandbox()`."""
    with Sandbox() as sandbox:
        yield _run_in(sandbox)


@contextmanager
def own_process() -> Iterator[Measure]:
    """`Sandbox(isolation="process")`."""
    with Sandbox(isolation="process") as sandbox:
        yield _run_in(sandbox)


@contextmanager
def over_http() -> Iterator[Measure]:
    """`Sandbox.connect(url)`."""
    with served("--workers", "1") as (url, _), Sandbox.connect(url) as sandbox:
        yield _run_in(sandbox)


@contextmanager
def over_mcp() -> Iterator[Measure]:
    """The official MCP client, and `wasmsand mcp` on standard input and output."""
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "wasmsand", "mcp"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    loop = asyncio.new_event_loop()
    ready: threading.Event = threading.Event()
    end = asyncio.Event()
    clients: list[Client] = []

    async def session() -> None:
        async with Client(parameters) as client:
            clients.append(client)
            ready.set()
            await end.wait()

    async def measure_once() -> float:
        began = time.perf_counter()
        result: Any = await clients[0].call_tool("sandbox_run", {"command": _SCRIPT})
        seconds = time.perf_counter() - began
        assert not result.is_error, result
        return seconds

    def serve() -> None:
        try:
            loop.run_until_complete(session())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait()
    if not clients:
        thread.join()
        raise RuntimeError("the MCP server did not start")
    try:
        # The client's own event loop takes the time, so that getting there is not counted.
        yield lambda: asyncio.run_coroutine_threadsafe(measure_once(), loop).result()
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()


INTERFACES: dict[str, Callable[[], Any]] = {
    "in this process": in_process,
    "in a process of its own": own_process,
    "over HTTP": over_http,
    "over MCP (stdio)": over_mcp,
}


def measure(rounds: int) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The times of each interface, and why others were skipped."""
    times: dict[str, list[float]] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        opened: dict[str, Measure] = {}
        for name, open_interface in INTERFACES.items():
            try:
                opened[name] = stack.enter_context(open_interface())
            except ImportError as error:
                absent[name] = str(error)
        for once in opened.values():
            for _ in range(3):
                once()
        for _ in range(rounds):
            for name, once in opened.items():
                times.setdefault(name, []).append(once())
    return times, absent


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.interfaces", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args(argv)
    times, absent = measure(options.rounds)
    table = Table(box=None)
    table.add_column("run `true`")
    for head in ("median ms", "p99 ms", "ms more than in this process"):
        table.add_column(head, justify="right")
    base = statistics.median(times["in this process"])
    for name, seconds in times.items():
        ordered = sorted(seconds)
        median = statistics.median(ordered)
        worst = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        more = f"{(median - base) * 1000:.2f}" if median != base else "-"
        table.add_row(name, f"{median * 1000:.2f}", f"{worst * 1000:.2f}", more)
    console = Console()
    console.print(table)
    for name, reason in absent.items():
        console.print(f"skipped: {name}: {reason}", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
