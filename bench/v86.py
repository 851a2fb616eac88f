"""v86 mode: `python -m bench.v86`.

Prints how long the machine's boot took when it was built, how long a start from the saved state
takes, the first command, the median command, Python, and how fast files are transferred; and the
memory of the Node process. Rules: the machine is built before; every answer is checked; CPU time of
the Node process stands beside wall-clock time, because other work on the host changes only the
latter.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from wasmsand import Sandbox, SandboxOptions
from wasmsand.v86.backend import V86Backend, open_v86_backend
from wasmsand.v86.image import find_image

_ROUNDS = 11
_FILE_BYTES = 8 << 20
_OPTIONS = SandboxOptions(timeout_ms=600_000)


class V86Row(NamedTuple):
    """One measurement."""

    name: str
    seconds: float
    cpu_seconds: float | None


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def rows() -> list[V86Row]:
    """Measure everything."""
    found = []
    entry = json.loads((find_image().directory / "entry.json").read_text())
    found.append(V86Row("boot, when it was built", entry["seconds"]["boot"], None))
    began = time.monotonic()
    backend = open_v86_backend(_OPTIONS)
    try:
        pid = backend._machine.agent().node.process.pid
        found.append(
            V86Row("start from the saved state", time.monotonic() - began, _cpu_seconds(pid))
        )
        sandbox = Sandbox.from_backend(backend, _OPTIONS)

        def measure(name: str, action: Callable[[], None], rounds: int = 1) -> None:
            times, cpu = [], []
            for _ in range(rounds):
                began, before = time.monotonic(), _cpu_seconds(pid)
                action()
                times.append(time.monotonic() - began)
                cpu.append(_cpu_seconds(pid) - before)
            found.append(V86Row(name, statistics.median(times), statistics.median(cpu)))

        def command(text: str, expected: str) -> Callable[[], None]:
            def run() -> None:
                assert sandbox.commands.run(text).stdout == expected

            return run

        measure("first command (echo)", command("echo hi", "hi\n"))
        measure("echo, median", command("echo hi", "hi\n"), _ROUNDS)
        measure("ls / | sort | head -1", command("ls / | sort | head -1", "bin\n"), _ROUNDS)
        measure("python3 -c 'print(1)'", command("python3 -c 'print(1)'", "1\n"), 3)
        found += _transfers(backend, measure)
        found.append(V86Row(f"memory of Node: {_memory_bytes(pid) / 1e6:.0f} MB", 0, None))
    finally:
        backend.close()
    return found


def _transfers(
    backend: V86Backend, measure: Callable[[str, Callable[[], None]], None]
) -> list[V86Row]:
    data = os.urandom(_FILE_BYTES)

    def read() -> None:
        assert backend.read_file("/tmp/bench") == data

    measure("write 8 MiB", lambda: backend.write_file("/tmp/bench", data))
    measure("read 8 MiB", read)
    measure("read a file of 1 KiB", lambda: (None, backend.read_file("/etc/passwd"))[0])
    return []


def main() -> int:
    """Print the table."""
    table = Table("v86 mode", "wall clock (s)", "CPU of Node (s)")
    for row in rows():
        cpu = "" if row.cpu_seconds is None else f"{row.cpu_seconds:.2f}"
        table.add_row(row.name, f"{row.seconds:.2f}" if row.seconds else "", cpu)
    Console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
