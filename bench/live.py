"""Many sandboxes with a live session each: `python -m bench.live`.

Measures, for shells and for Python sessions, what a sandbox with a session takes (private memory of
this process, threads, creation), and how long a small request takes in one of many: alone, among
all by one caller, and among all by eight callers at once. Rules: all are in one process; every
session has answered before the memory is measured; requests go to sandboxes in random order, and
every answer is checked.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.memory import private_bytes
from bench.pages import ROOT
from bench.report import duration
from wasmsand import PythonSession, Sandbox, Shell

_CALLERS: Final = 8
_ALONE: Final = 200
_Session = Shell | PythonSession
_Opened = tuple[Sandbox, _Session]


class Times(NamedTuple):
    """Wall-clock times of requests, in seconds."""

    median: float
    p99: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Times:
        return cls(statistics.median(times), statistics.quantiles(times, n=100)[98])

    def __str__(self) -> str:
        return f"{duration(self.median)}, {duration(self.p99)}"


class Live(NamedTuple):
    """The figures of one kind of session."""

    kind: str
    sandboxes: int
    bytes_each: float
    threads: int
    creation: float
    """Seconds for a sandbox with its session."""
    alone: Times
    among: Times
    together: Times
    """With eight callers."""


def _open(kind: str) -> _Opened:
    sandbox = Sandbox()
    session = sandbox.shell() if kind == "shell" else sandbox.python()
    _ask(session)
    return sandbox, session


def _ask(session: _Session) -> float:
    request = "echo hi" if isinstance(session, Shell) else "print('hi')"
    began = time.perf_counter()
    answer = session.run(request).stdout
    seconds = time.perf_counter() - began
    if answer != "hi\n":
        raise SystemExit(f"{answer!r} instead of 'hi\\n'")
    return seconds


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _by_callers(ask: Callable[[], float], count: int) -> list[float]:
    times: list[float] = []

    def call() -> None:
        for _ in range(count // _CALLERS):
            times.append(ask())

    callers = [threading.Thread(target=call) for _ in range(_CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return times


def measure(kind: str, count: int, requests: int) -> Live:
    """Measure in this process, which must have no sandbox."""
    _, first = warm = _open(kind)
    alone = Times.of([_ask(first) for _ in range(_ALONE)])
    gc.collect()
    before, threads = private_bytes(), _threads()
    began = time.perf_counter()
    opened = [_open(kind) for _ in range(count)]
    creation = (time.perf_counter() - began) / count
    gc.collect()
    each = (private_bytes() - before) / count
    threads = _threads() - threads
    chosen = random.Random(1)
    among = Times.of([_ask(chosen.choice(opened)[1]) for _ in range(requests)])
    together = Times.of(_by_callers(lambda: _ask(chosen.choice(opened)[1]), requests))
    for sandbox, _ in (warm, *opened):
        sandbox.kill()
    return Live(kind, count, each, threads, creation, alone, among, together)


def table(count: int, requests: int) -> str:
    """Measure each kind in a process of its own; returns a table in Markdown."""
    lines = [
        f"| {count:,} sandboxes, each with a live session | memory of each | threads | creation of "
        "each | a request alone: median, p99 | among all | among all, 8 callers |",
        "|---" + "|--:" * 6 + "|",
    ]
    options = ["--count", str(count), "--requests", str(requests)]
    for kind, name in (("shell", "shell, `echo hi`"), ("python", "Python, `print('hi')`")):
        output = subprocess.check_output(
            [sys.executable, "-m", "bench.live", "--kind", kind, *options],
            cwd=ROOT,
        )
        found = json.loads(output)
        times = [str(Times(*found[field])) for field in ("alone", "among", "together")]
        lines.append(
            f"| {name} | {found['bytes_each'] / 1e6:.2f} MB | {found['threads']:,} | "
            f"{duration(found['creation'])} | {' | '.join(times)} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="sandboxes")
    parser.add_argument("--requests", type=int, default=4000, help="requests of each kind")
    parser.add_argument("--kind", choices=("shell", "python"), help="print only this one, as JSON")
    parser.add_argument("--markdown", action="store_true", help="print Markdown; always the case")
    given = parser.parse_args(argv)
    if given.kind is None:
        print(table(given.count, given.requests))
    else:
        print(json.dumps(measure(given.kind, given.count, given.requests)._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
