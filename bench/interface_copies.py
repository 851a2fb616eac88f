"""What copies of a sandbox cost through each interface: `python -m bench.interface_copies`.

Measures `snapshot`, `restore` and `fork` of a sandbox without sessions, and of one with a Python
session that has filled 10 MB and a shell, in this process, in a process of its own and over HTTP.
Rules: interfaces take turns, so that a busy machine slows all of them alike; ending a copy is not
part of the time of `fork`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from rich.console import Console
from rich.table import Table

from bench.served import served
from wasmsand import Sandbox

FILL = "data = bytearray(10_000_000)\nfor i in range(0, len(data), 4096): data[i] = 1"


@contextmanager
def _over_http() -> Iterator[Sandbox]:
    with served("--workers", "1") as (url, _), Sandbox.connect(url) as sandbox:
        yield sandbox


INTERFACES: dict[str, Callable[[], AbstractContextManager[Sandbox]]] = {
    "in this process": Sandbox,
    "in a process of its own": lambda: Sandbox(isolation="process"),
    "over HTTP": _over_http,
}


def _snapshot(sandbox: Sandbox) -> float:
    began = time.perf_counter()
    snapshot = sandbox.snapshot()
    seconds = time.perf_counter() - began
    sandbox.snapshots.delete(snapshot)
    return seconds


def _restore(sandbox: Sandbox) -> float:
    snapshot = sandbox.snapshot()
    began = time.perf_counter()
    sandbox.restore(snapshot)
    seconds = time.perf_counter() - began
    sandbox.snapshots.delete(snapshot)
    return seconds


def _fork(sandbox: Sandbox) -> float:
    began = time.perf_counter()
    twin = sandbox.fork()
    seconds = time.perf_counter() - began
    twin.kill()
    return seconds


ACTIONS = {"snapshot": _snapshot, "restore": _restore, "fork": _fork}


def measure(rounds: int) -> dict[tuple[str, str, str], float]:
    """The median of each action, by interface and content of the sandbox."""
    times: dict[tuple[str, str, str], list[float]] = {}
    with ExitStack() as stack:
        opened = {name: stack.enter_context(make()) for name, make in INTERFACES.items()}
        for content in ("no sessions", "Python with 10 MB, shell"):
            if content != "no sessions":
                for sandbox in opened.values():
                    sandbox.python().run(FILL)
                    sandbox.shell().run("x=1")
            for number in range(rounds + 2):
                for name, sandbox in opened.items():
                    for action, act in ACTIONS.items():
                        seconds = act(sandbox)
                        if number >= 2:
                            times.setdefault((content, name, action), []).append(seconds)
    return {key: statistics.median(found) for key, found in times.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.interface_copies", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    found = measure(parser.parse_args(argv).rounds)
    table = Table(box=None)
    table.add_column("sandbox with")
    table.add_column("interface")
    for action in ACTIONS:
        table.add_column(f"{action} ms", justify="right")
    for content, name in dict.fromkeys((content, name) for content, name, _ in found):
        shown = [f"{found[content, name, action] * 1000:.2f}" for action in ACTIONS]
        table.add_row(content, name, *shown)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
