"""Memory images that the host renews for Python: the cost of making one, and of starting from one.

`python -m bench.renewal [STARTS]` prints how long one preparation takes; then the start of a
program from the memory image of the build and from the host's, in turns; and last a start while
the host prepares another. Rules: comparisons use CPU time, because the machine may be busy; the
last figure is wall-clock time, because it is about waiting.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from wasmsand import Sandbox
from wasmsand.machine import base_image, capture_at_checkpoint
from wasmsand.machine.renewal import VARIABLE

_PLAIN = "/usr/libexec/python3-plain"
_HASH = ["python3", "-c", "print(hash('text'))"]
_PROGRAMS = ("print(1)", "import json, re, asyncio, sqlite3")
_PREPARATIONS = 5


def _times(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.2f} ms (best {min(seconds) * 1e3:.2f})"


def _taken(clock: Callable[[], float], action: Callable[[], object]) -> float:
    began = clock()
    action()
    return clock() - began


def _prepare() -> None:
    capture_at_checkpoint(_PLAIN, "_resume", image=base_image())


def _wait_for_the_host(sandbox: Sandbox) -> None:
    """Wait until programs start from a memory image that the host made."""
    first = sandbox.commands.run(_HASH).stdout
    while sandbox.commands.run(_HASH).stdout == first:
        time.sleep(0.1)


def _compare(sandbox: Sandbox, program: str, starts: int) -> None:
    start = partial(sandbox.commands.run, ["python3", "-c", program])
    taken: dict[str, list[float]] = {"off": [], "on": []}
    for _ in range(starts):
        for setting, seconds in taken.items():
            os.environ[VARIABLE] = setting
            seconds.append(_taken(time.process_time, start))
    ratio = statistics.median(taken["on"]) / statistics.median(taken["off"])
    print(
        f"{program}: the image's memory {_times(taken['off'])}, "
        f"the host's {_times(taken['on'])}: {ratio:.2f}x"
    )


def _measure_waiting(sandbox: Sandbox, starts: int) -> None:
    os.environ[VARIABLE] = "off"
    enough = threading.Event()

    def prepare_all_the_time() -> None:
        while not enough.is_set():
            _prepare()

    start = partial(sandbox.commands.run, ["python3", "-c", _PROGRAMS[0]])
    alone = [_taken(time.perf_counter, start) for _ in range(starts)]
    thread = threading.Thread(target=prepare_all_the_time)
    thread.start()
    beside = [_taken(time.perf_counter, start) for _ in range(starts)]
    enough.set()
    thread.join()
    print(f"a start alone {_times(alone)}, while the host prepares {_times(beside)}")


def main(starts: int = 200) -> None:
    """Measure with this many starts of each kind."""
    _prepare()
    preparations = [_taken(time.process_time, _prepare) for _ in range(_PREPARATIONS)]
    print(f"preparing: {_times(preparations)} of a processor")
    with Sandbox() as sandbox:
        os.environ.pop(VARIABLE, None)
        _wait_for_the_host(sandbox)
        for program in _PROGRAMS:
            _compare(sandbox, program, starts)
        _measure_waiting(sandbox, starts)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
