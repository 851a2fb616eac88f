"""The first use after `pip install`, with compiled programs from the wheel and without.

`python -m bench.first_use [PYTHON]` measures `wasmsand run` of a few commands with the interpreter
PYTHON, by default this one. Give it that of a virtual environment with installed wheels. Each
command is measured with an empty cache ("cold"), then again with the same cache ("warm"), and with
an empty cache and the compiled modules of the wheel left out ("compiled here"; only with
`--compile`, because it takes minutes). Rules: a whole process is measured, with its start and its
imports: wall-clock time, and CPU time with that of its children. Each command gets a home directory
of its own; the files of the package are in the page cache.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

_COMMANDS = (
    ("echo", "echo hi"),
    ("python3", "python3 -c 'print(1)'"),
    ("git", "git --version"),
    ("import numpy", "python3 -c 'import numpy'"),
)
_WITHOUT = """
import wasmsand.engine.shipped_modules as shipped
shipped.installed_indexes = lambda: ()
"""
_RUN = "import sys; from wasmsand.cli import main; sys.exit(main(sys.argv[1:]))"


class Taken(NamedTuple):
    """Seconds of one process."""

    wall: float
    cpu: float


def _measure(python: str, command: str, home: str, *, shipped: bool) -> Taken | None:
    """The time of one `wasmsand run`; None if the command fails, as without numpy."""
    code = _RUN if shipped else _WITHOUT + _RUN
    words = [python, "-I", "-c", code, "run"]
    if "numpy" in command:
        words += ["--package", "numpy"]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [*words, command],
        env={"HOME": home, "PATH": os.environ["PATH"], "WASMSAND_RENEWAL": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode != 0:
        return None
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.monotonic() - began, cpu)


def _best(python: str, command: str, *, cold: bool, repetitions: int) -> Taken | None:
    found = []
    with tempfile.TemporaryDirectory() as warm:
        if not cold:
            _measure(python, command, warm, shipped=True)
        for _ in range(repetitions):
            with tempfile.TemporaryDirectory() as empty:
                taken = _measure(python, command, empty if cold else warm, shipped=True)
            if taken is None:
                return None
            found.append(taken)
    return min(found, key=lambda taken: taken.wall)


def main() -> int:
    """Print one line per command."""
    parser = argparse.ArgumentParser(description="Measure the first use after an installation.")
    parser.add_argument("python", nargs="?", default=sys.executable)
    parser.add_argument("--compile", action="store_true", help="measure compilation too")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print("seconds of wall-clock time (CPU time)")
    for name, command in _COMMANDS:
        columns = []
        for label, cold in (("cold", True), ("warm", False)):
            taken = _best(options.python, command, cold=cold, repetitions=options.repetitions)
            columns.append(f"{label} {_shown(taken)}")
        if options.compile:
            with tempfile.TemporaryDirectory() as empty:
                taken = _measure(options.python, command, empty, shipped=False)
            columns.append(f"compiled here {_shown(taken)}")
        print(f"{name:<14}", "   ".join(columns), flush=True)
    return 0


def _shown(taken: Taken | None) -> str:
    return "failed" if taken is None else f"{taken.wall:.2f} ({taken.cpu:.2f})"


if __name__ == "__main__":
    sys.exit(main())
