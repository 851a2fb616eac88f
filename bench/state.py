"""States of sandboxes: `python -m bench.state`.

Prints what it takes to save a sandbox to a file and to load it, and how large the file is: for an
empty sandbox, one with 10,000 files, and ones with a live Python session of 10 and 100 MB. Rules:
medians of several runs in one process; every loaded sandbox is used and its answer checked.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    console = Console()
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
