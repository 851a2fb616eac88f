"""Small requests: `python -m bench.sessions`.

Prints what one request takes when it asks for almost nothing: a live Python session, a live shell,
a command of its own (beside the same command on this machine), and the import of the package in a
new process. Rules: every answer is checked. The processor time of the whole process is shown beside
the wall-clock time, because other programs change it less; the fastest quarter of the requests
shows what a quiet machine would do.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.report import duration
from wasmsand import Sandbox

_WARM_UP: Final = 50
_IMPORTS: Final = 15
_HEADINGS: Final = ("wall-clock time", "fastest quarter", "CPU time")
_IMPORT: Final = (
    "import time; wall, cpu = time.perf_counter(), time.process_time()\n"
    "from wasmsand import Sandbox\n"
    "print(time.perf_counter() - wall, time.process_time() - cpu)"
)


class Figure(NamedTuple):
    """The times of one request, in seconds."""

    name: str
    wall: float
    cpu: float | None
    """None if other processes do the work."""
    fast: float
    """The wall-clock time that a quarter of the requests took at most."""


def measure(name: str, count: int, request: Callable[[], object], answer: object) -> Figure:
    """Make a request `count` times; `answer` is what it must return."""
    walls, cpus = [], []
    for number in range(_WARM_UP + count):
        cpu, wall = time.process_time(), time.perf_counter()
        got = request()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if got != answer:
            raise SystemExit(f"{name}: {got!r} instead of {answer!r}")
        if number >= _WARM_UP:
            walls.append(wall)
            cpus.append(cpu)
    return _figure(name, walls, cpus)


def _figure(name: str, walls: list[float], cpus: list[float] | None) -> Figure:
    cpu = None if cpus is None else statistics.median(cpus)
    fast = statistics.quantiles(walls, n=4)[0]
    return Figure(name, statistics.median(walls), cpu, fast)


def _native_echo() -> str:
    return subprocess.run(["bash", "-c", "echo hi"], capture_output=True, text=True).stdout


def _import_figure() -> Figure:
    """The first import, which may compile the modules, is left out."""
    lines = [
        subprocess.check_output([sys.executable, "-c", _IMPORT], text=True).split()
        for _ in range(_IMPORTS + 1)
    ][1:]
    walls, cpus = ([float(line[column]) for line in lines] for column in (0, 1))
    return _figure("from wasmsand import Sandbox", walls, cpus)


def figures(count: int) -> list[Figure]:
    """All rows."""
    with Sandbox() as sandbox, sandbox.python() as python, sandbox.shell() as shell:
        run = sandbox.commands.run
        found = [
            measure('python().run("1")', count, lambda: python.run("1").value, 1),
            measure('python().run("x = 1")', count, lambda: python.run("x = 1").error, None),
            measure(
                "python().run(\"print('hi')\")",
                count,
                lambda: python.run("print('hi')").stdout,
                "hi\n",
            ),
            measure('shell().run("echo hi")', count, lambda: shell.run("echo hi").stdout, "hi\n"),
            measure('run("echo hi")', count, lambda: run("echo hi").stdout, "hi\n"),
            measure('run(["true"])', count, lambda: run(["true"]).exit_code, 0),
        ]
    native = measure("bash -c 'echo hi' (native)", count // 10 + 1, _native_echo, "hi\n")
    return [*found, native._replace(cpu=None), _import_figure()]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.sessions", description="What a small request takes."
    )
    parser.add_argument("--count", type=int, default=1000, help="requests of each kind")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args(argv)
    rows = [
        (
            row.name,
            duration(row.wall),
            duration(row.fast),
            "" if row.cpu is None else duration(row.cpu),
        )
        for row in figures(options.count)
    ]
    if options.markdown:
        print(f"| | {' | '.join(_HEADINGS)} |\n|---|--:|--:|--:|")
        for name, *times in rows:
            print(f"| `{name}` | {' | '.join(times)} |")
        return 0
    table = Table(title="small requests, medians", title_justify="left")
    for heading in ("", *_HEADINGS):
        table.add_column(heading, justify="right" if heading else "left")
    for cells in rows:
        table.add_row(*cells)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
