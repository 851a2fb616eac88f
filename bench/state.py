"""States of sandboxes: `python -m bench.state`.

Prints what it takes to copy a sandbox, to save it to a file and to load it, and how large the file
is: for an empty sandbox, one with 10,000 files, and ones with a live Python session of 10 and 100
MB. Rules: medians of several runs in one process; every copy is used and its answer checked. The
processor time of the thread is shown beside the wall-clock time, because other programs do not
change it. Ending a copy is not measured.

`first fork` is the first copy of a session at all, which copies its memory; `fork` the first one
after a request, of a session that was copied before; `fork again` one of an unchanged session.
`answer` is the first request in a copy that shares memory with the original.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from wasmsand import Sandbox
from wasmsand.machine.saved.compression import best_codec
from wasmsand.sdk.python_session import PythonSession

FILES: Final = 10_000
_TEXT: Final = "a line of text\n" * 20
_MIXED: Final = (
    "import random; r = random.Random(1)\n"
    "rows = [(n, r.random(), f'name {{n}}') for n in range({rows})]\n"
    "sum(row[0] for row in rows)"
)
_ROWS_PER_MB: Final = 8000
"""Rows of `_MIXED` that take a megabyte in the interpreter."""


class SavedRow(NamedTuple):
    """Medians of one case."""

    name: str
    save_ms: float
    load_ms: float
    size_bytes: int
    memory_bytes: int


def _plain(sandbox: Sandbox) -> object:
    return sandbox.commands.run("echo works").stdout


def _count(sandbox: Sandbox) -> object:
    return len(sandbox.files.list("many"))


def _rows(sandbox: Sandbox) -> object:
    session = sandbox.sessions[0]
    assert isinstance(session, PythonSession)
    return session.run("len(rows), rows[7][2]").repr


def _with_files(sandbox: Sandbox) -> None:
    for number in range(FILES):
        sandbox.files.write(f"many/{number}", f"{number}\n{_TEXT}")


def _with_session(megabytes: int) -> Callable[[Sandbox], None]:
    def fill(sandbox: Sandbox) -> None:
        done = sandbox.python().run(_MIXED.format(rows=megabytes * _ROWS_PER_MB), timeout_ms=120000)
        assert done.error is None, done.error

    return fill


CASES: Final[tuple[tuple[str, Callable[[Sandbox], object], Callable[[Sandbox], object]], ...]] = (
    ("an empty sandbox", lambda sandbox: None, _plain),
    (f"{FILES:,} files of 300 bytes", _with_files, _count),
    ("a shell", lambda sandbox: sandbox.shell(), _plain),
    ("a Python session, nothing in it", lambda sandbox: sandbox.python(), _plain),
    ("a Python session of 10 MB", _with_session(10), _rows),
    ("a Python session of 100 MB", _with_session(100), _rows),
)


@contextmanager
def _timed(times: list[float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times.append((time.perf_counter() - began) * 1000)


def saved_rows(rounds: int) -> Iterator[SavedRow]:
    """Save and load each case."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "m.wsand")
        for name, fill, answer in CASES:
            saves: list[float] = []
            loads: list[float] = []
            with Sandbox() as sandbox:
                fill(sandbox)
                expected, memory = answer(sandbox), sandbox.usage().memory_bytes
                for _ in range(rounds):
                    with _timed(saves):
                        sandbox.save(target)
                    with _timed(loads):
                        copy = Sandbox.load(target)
                    with copy:
                        assert answer(copy) == expected, name
            yield SavedRow(
                name,
                statistics.median(saves),
                statistics.median(loads),
                target.stat().st_size,
                memory,
            )


class CopiedRow(NamedTuple):
    """Medians of one case: wall-clock and processor milliseconds, by what was done."""

    name: str
    times: dict[str, tuple[float, float]]


COPIES: Final = (
    "first fork",
    "fork",
    "fork again",
    "fork(3)",
    "answer",
    "snapshot",
    "restore",
)
_FIRST_ROUNDS: Final = 3
"""A first fork needs a new sandbox, and filling it takes long."""


class _Clock:
    """Collects times by name."""

    def __init__(self) -> None:
        self._times: dict[str, list[tuple[float, float]]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.thread_time()
        yield
        took = (time.perf_counter() - wall) * 1000, (time.thread_time() - processor) * 1000
        self._times.setdefault(name, []).append(took)

    def medians(self) -> dict[str, tuple[float, float]]:
        return {
            name: (
                statistics.median(wall for wall, _ in times),
                statistics.median(processor for _, processor in times),
            )
            for name, times in self._times.items()
        }


def copied_rows(rounds: int) -> Iterator[CopiedRow]:
    """Copy each case."""
    for name, fill, answer in CASES:
        clock = _Clock()
        for _ in range(_FIRST_ROUNDS):
            with Sandbox() as sandbox:
                fill(sandbox)
                with clock("first fork"):
                    twin = sandbox.fork()
                twin.kill()
        with Sandbox() as sandbox:
            fill(sandbox)
            expected = answer(sandbox)
            sandbox.fork().kill()
            sandbox.fork().kill()
            for _ in range(rounds):
                assert answer(sandbox) == expected, name  # it has changed now
                with clock("fork"):
                    twin = sandbox.fork()
                twin.kill()
                sandbox.fork().kill()
                with clock("fork again"):
                    twin = sandbox.fork()
                with clock("answer"):
                    assert answer(twin) == expected, name
                twin.kill()
                with clock("fork(3)"):
                    twins = sandbox.fork(3)
                for twin in twins:
                    twin.kill()
                with clock("snapshot"):
                    snapshot = sandbox.snapshot()
                with clock("restore"):
                    sandbox.restore(snapshot)
                sandbox.snapshots.delete(snapshot)
        yield CopiedRow(name, clock.medians())


def _print_copies(console: Console, rounds: int) -> None:
    title = f"copies, medians of {rounds}: milliseconds (of processor time)"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in COPIES:
        table.add_column(heading, justify="right")
    for row in copied_rows(rounds):
        times = [row.times[heading] for heading in COPIES]
        table.add_row(row.name, *(f"{wall:.2f} ({own:.2f})" for wall, own in times))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    console = Console(width=140)
    _print_copies(console, rounds)
    table = Table(title=f"save and load, medians of {rounds}, {best_codec()}", title_justify="left")
    table.add_column("")
    for heading in ("save", "load", "file", "memory in use"):
        table.add_column(heading, justify="right")
    for row in saved_rows(rounds):
        table.add_row(
            row.name,
            f"{row.save_ms:.1f} ms",
            f"{row.load_ms:.1f} ms",
            f"{row.size_bytes / 1e6:.3f} MB",
            f"{row.memory_bytes / 1e6:.1f} MB",
        )
    console.print(table)


if __name__ == "__main__":
    main()
