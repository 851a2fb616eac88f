"""Prepared imports: CPU time of a start, and the memory of live processes.

`python -m bench.prepared [COUNT]` prints one line per program; COUNT is the number of live
processes, 100 by default. Rules: programs start from the image's own memory; CPU time is that of
the whole host process, the best of many; memory is the private memory of this process.
"""

from __future__ import annotations

import os
import sys
import time

from bench.memory import private_bytes
from wasmsand import Sandbox
from wasmsand.machine import image_programs
from wasmsand.machine.renewal import VARIABLE

_FULL = "/usr/libexec/python3-full"
_PROGRAMS = (
    ("/usr/libexec/python3", "print(1)"),
    (_FULL, "print(1)"),
    (_FULL, "import numpy"),
    (_FULL, "import pandas"),
    (_FULL, "import matplotlib.pyplot"),
    (_FULL, "import scipy.stats"),
    (_FULL, "import sklearn.ensemble"),
)
_STARTS = 25
_PLAIN_STARTS = 3


def _cpu_time(sandbox: Sandbox, program: str, code: str, starts: int) -> float:
    """The least CPU time of a start, in milliseconds."""
    taken = []
    for _ in range(starts):
        began = time.process_time()
        result = sandbox.commands.run([program, "-c", code])
        taken.append(time.process_time() - began)
        assert result.exit_code == 0, result.stderr
    return min(taken) * 1e3


def _memory(program: str, code: str, count: int) -> tuple[float, float]:
    """Private and charged megabytes of each of `count` live processes."""
    waiting = f"{code}\nopen('ready', 'a').write('x')\nimport time; time.sleep(10_000)"
    with _sandbox() as sandbox:
        before = private_bytes()
        for _ in range(count):
            sandbox.commands.start([program, "-c", waiting])
        while not sandbox.files.exists("ready") or len(sandbox.files.read("ready")) < count:
            time.sleep(0.05)
        private = private_bytes() - before
        return private / count / 1e6, sandbox.usage().memory_bytes / count / 1e6


def _sandbox() -> Sandbox:
    return Sandbox(packages="all", timeout_ms=None, memory_limit_bytes=8 << 30, max_processes=1000)


def main(count: int = 100) -> None:
    """Measure."""
    os.environ[VARIABLE] = "off"
    if not any(program.name == "python-full" for program in image_programs()):
        sys.exit("the stage of packages is not built: run `make packages`")
    for program, code in _PROGRAMS:
        with _sandbox() as sandbox:
            prepared = _cpu_time(sandbox, program, code, _STARTS)
            plain = _cpu_time(sandbox, f"{program}-plain", code, _PLAIN_STARTS)
        private, charged = _memory(program, code, count)
        print(
            f"{os.path.basename(program)} -c '{code}': {prepared:.1f} ms, plain {plain:.0f} ms; "
            f"{count} live: {private:.2f} MB private each, {charged:.2f} MB charged",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
