"""Live Python interpreters: the memory of each, the time to start one and to run code in one.

`python -m bench.interpreters [COUNT]` prints three lines; COUNT is 100 by default. Rules: each
interpreter is a session in a sandbox of its own, which has run a program and waits for the next;
memory is the private memory of this process, because shared pages are counted once anyway; times
are the median and the best.
"""

from __future__ import annotations

import statistics
import sys
import time

from bench.memory import private_bytes
from wasmsand import PythonSession, Sandbox

_PROGRAM = "import json; rows = [n * n for n in range(100)]; json.dumps(rows)"
_ASKED = 200


def _times(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.2f} ms (best {min(seconds) * 1e3:.2f})"


def main(count: int = 100) -> None:
    """Measure `count` live interpreters."""
    with Sandbox() as warm, warm.python() as session:
        session.run(_PROGRAM)
    before = private_bytes()
    sandboxes = [Sandbox() for _ in range(count)]
    sessions: list[PythonSession] = []
    starts, calls = [], []
    for sandbox in sandboxes:
        began = time.perf_counter()
        sessions.append(sandbox.python())
        sessions[-1].run(_PROGRAM)
        starts.append(time.perf_counter() - began)
    after = private_bytes()
    for number in range(_ASKED):
        began = time.perf_counter()
        sessions[number % count].run("rows[7]")
        calls.append(time.perf_counter() - began)
    for sandbox in sandboxes:
        sandbox.kill()
    print(
        f"{count} live interpreters: the process holds {after / 1e6:.0f} MB, "
        f"{(after - before) / count / 1e6:.2f} MB each"
    )
    print(f"start one and run a program: {_times(starts)}")
    print(f"run an expression in one: {_times(calls)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
