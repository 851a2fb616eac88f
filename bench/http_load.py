"""A server under load: `python -m bench.http_load`.

Many clients create sandboxes, do mixed work in them and kill them, at a steady pace. Prints
how long each kind of request took, and what the server held before and after. Rules: the
server is `wasmsand serve` in a process of its own; every answer is checked; a warm-up with the
same number of clients comes first, so that pools are full and programs are loaded before the
server's memory, files and threads are counted; the exit status is 1 if an answer was wrong or
the server kept something.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.served import served
from wasmsand import Sandbox

FD_SLACK = 8
"""Allowed growth: connections that clients have not closed yet."""
MEMORY_SLACK = 48 * 1024 * 1024
"""Allowed growth: an allocator does not give everything back."""


class Wrong(Exception):
    """An answer of the server was wrong."""


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    descriptors: int
    threads: int
    resident_bytes: int

    @classmethod
    def of(cls, pid: int) -> Held:
        """What a process holds now."""
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in status)
        return cls(
            descriptors=len(os.listdir(f"/proc/{pid}/fd")),
            threads=int(fields["Threads"]),
            resident_bytes=int(fields["VmRSS"].split()[0]) * 1024,
        )


@dataclass
class Report:
    """The results of one run."""

    clients: int
    sandboxes: int
    seconds: float
    before: Held
    after: Held
    times: dict[str, list[float]]
    errors: list[str] = field(default_factory=list)

    @property
    def leaks(self) -> list[str]:
        """What the server holds in addition to what it held before."""
        found = []
        if self.after.descriptors > self.before.descriptors + FD_SLACK:
            found.append(f"descriptors: {self.before.descriptors}, then {self.after.descriptors}")
        if self.after.threads > self.before.threads + FD_SLACK:
            found.append(f"threads: {self.before.threads}, then {self.after.threads}")
        if self.after.resident_bytes > self.before.resident_bytes + MEMORY_SLACK:
            grown = self.after.resident_bytes - self.before.resident_bytes
            found.append(f"memory: {grown / 1e6:.0f} MB more")
        return found

    def rows(self) -> list[tuple[str, int, float, float, float]]:
        """Name, count, median, 99th percentile and maximum of each kind of request, in ms."""
        rows = []
        for name, seconds in self.times.items():
            ordered = sorted(seconds)
            rows.append(
                (
                    name,
                    len(ordered),
                    ordered[len(ordered) // 2] * 1000,
                    ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1000,
                    ordered[-1] * 1000,
                )
            )
        return rows


class Stopwatch:
    """The times of each kind of request, collected from all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.times: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Time the block."""
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        with self._lock:
            self.times[name].append(seconds)


def expect(name: str, got: object, wanted: object) -> None:
    """Raise `Wrong` unless `got` equals `wanted`."""
    if got != wanted:
        raise Wrong(f"{name}: got {got!r:.200}, expected {wanted!r:.200}")


def use_one(url: str, number: int, watch: Stopwatch) -> None:
    """One sandbox, from its creation to its end."""
    with watch.measure("create"):
        sandbox = Sandbox.connect(url)
    try:
        with watch.measure("run true"):
            expect("true", sandbox.commands.run(["true"]).exit_code, 0)
        with watch.measure("write a file"):
            sandbox.files.write("data", f"{number}\n" * 100)
        with watch.measure("run a pipeline"):
            result = sandbox.commands.run("sort data | uniq -c | tr -s ' '")
            expect("pipeline", result.stdout, f" 100 {number}\n")
        with watch.measure("read a file"):
            expect("file", sandbox.files.read("data"), f"{number}\n".encode() * 100)
        _VARIED[number % len(_VARIED)](sandbox, watch)
    finally:
        with watch.measure("kill"):
            sandbox.kill()


def _print_much(sandbox: Sandbox, watch: Stopwatch) -> None:
    with watch.measure("print 1 MB"):
        result = sandbox.commands.run("head -c 1000000 /dev/zero | tr '\\0' x")
        expect("output", len(result.stdout_bytes), 1_000_000)


def _sleep(sandbox: Sandbox, watch: Stopwatch) -> None:
    with watch.measure("sleep 0.2 s"):
        expect("sleep", sandbox.commands.run("sleep 0.2; echo $?").stdout, "0\n")


def _time_out(sandbox: Sandbox, watch: Stopwatch) -> None:
    with watch.measure("time out at 0.2 s"):
        result = sandbox.commands.run("while :; do :; done", timeout_ms=200)
        expect("timeout", result.timed_out, True)


def _talk(sandbox: Sandbox, watch: Stopwatch) -> None:
    with watch.measure("talk to a command"):
        command = sandbox.commands.start("read a; echo got $a; read b; exit 7")
        command.write_stdin("this\n")
        expect("talk", next(iter(command)).text, "got this\n")
        command.close_stdin()
        expect("end", command.wait().exit_code, 7)


def _fail(sandbox: Sandbox, watch: Stopwatch) -> None:
    with watch.measure("fail"):
        expect("failure", sandbox.commands.run("ls /nowhere").exit_code, 2)


_VARIED: tuple[Callable[[Sandbox, Stopwatch], None], ...] = (
    _print_much,
    _sleep,
    _time_out,
    _talk,
    _fail,
)


def drive(url: str, clients: int, sandboxes: int, seconds: float, watch: Stopwatch) -> list[str]:
    """Use that many sandboxes from `clients` threads; they begin evenly spread over `seconds`.

    Returns what went wrong.
    """
    began, errors = time.monotonic(), []
    numbers = iter(range(sandboxes))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            wait = began + number * seconds / sandboxes - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            try:
                use_one(url, number, watch)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def measure(clients: int, sandboxes: int, seconds: float) -> Report:
    """Start a server, warm it up, drive it."""
    with served("--workers", "1") as (url, pid):
        errors = drive(url, clients, clients * 4, 0, Stopwatch())
        before = _settled(pid)
        watch = Stopwatch()
        began = time.monotonic()
        errors += drive(url, clients, sandboxes, seconds, watch)
        took = time.monotonic() - began
        after = _settled(pid)
    return Report(clients, sandboxes, took, before, after, dict(watch.times), errors)


def _settled(pid: int) -> Held:
    """What the server holds once it is idle."""
    time.sleep(2)
    return Held.of(pid)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.http_load", description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--sandboxes", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    report = measure(options.clients, options.sandboxes, options.seconds)
    if options.json:
        print(json.dumps({**asdict(report), "leaks": report.leaks}))
    else:
        _print(report)
    return 1 if report.errors or report.leaks else 0


def _print(report: Report) -> None:
    console = Console()
    table = Table(box=None)
    table.add_column("request")
    for head in ("count", "p50 ms", "p99 ms", "max ms"):
        table.add_column(head, justify="right")
    for name, count, *milliseconds in report.rows():
        table.add_row(name, str(count), *(f"{value:.1f}" for value in milliseconds))
    console.print(table)
    requests = sum(len(times) for times in report.times.values())
    console.print(
        f"{report.clients} clients, {report.sandboxes} sandboxes in {report.seconds:.0f} s, "
        f"{requests / report.seconds:.0f} steps per second, {len(report.errors)} errors"
    )
    for name, held in (("before", report.before), ("after", report.after)):
        console.print(
            f"{name}: {held.descriptors} descriptors, {held.threads} threads, "
            f"{held.resident_bytes / 1e6:.0f} MB"
        )
    for line in [*report.leaks, *sorted(set(report.errors))[:10]]:
        console.print(f"[red]{line}[/]")


if __name__ == "__main__":
    sys.exit(main())
