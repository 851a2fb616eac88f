"""Paused sandboxes of a server: `python -m bench.resume`.

Starts `wasmsand serve --store` and prints how long a pause takes, and how long the next request
takes, from its sending to its answer, which resumes the sandbox: one with a few files, one with a
live Python session of 10 MB; with and without a separate process. Rules: medians of several rounds;
every answer is checked; the same request to a running sandbox is beside it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from tests.http.server import ServerProcess
from wasmsand import Sandbox
from wasmsand.sdk.python_session import PythonSession

_ROWS: Final = 80_000
"""Rows that take 10 MB in the interpreter."""


class ResumeRow(NamedTuple):
    """Medians of one case, in milliseconds."""

    name: str
    isolation: str
    pause: float
    resume: float
    running: float


def _files(sandbox: Sandbox) -> Callable[[], object]:
    sandbox.files.write("a.txt", "content")
    return lambda: sandbox.files.read_text("a.txt")


def _session(sandbox: Sandbox) -> Callable[[], object]:
    session = sandbox.python()
    assert isinstance(session, PythonSession)
    made = session.run(f"rows = [(n, n * 0.5, f'name {{n}}') for n in range({_ROWS})]; len(rows)")
    assert made.value == _ROWS, made
    return lambda: session.run("rows[7][2]").value


_CASES: Final = (
    ("files only", _files, "content"),
    ("Python session, 10 MB", _session, "name 7"),
)


def resume_rows(rounds: int) -> list[ResumeRow]:
    """Measure all cases."""
    found = []
    for isolation in ("none", "process"):
        with tempfile.TemporaryDirectory() as store:
            server = ServerProcess("--store", store, "--isolation", isolation)
            try:
                for name, prepare, answer in _CASES:
                    found.append(_measured(server.url, name, isolation, prepare, answer, rounds))
            finally:
                server.terminate()
    return found


def _measured(
    url: str,
    name: str,
    isolation: str,
    prepare: Callable[[Sandbox], Callable[[], object]],
    answer: str,
    rounds: int,
) -> ResumeRow:
    pauses, resumes, runs = [], [], []
    with Sandbox.connect(url) as sandbox:
        ask = prepare(sandbox)
        for _ in range(rounds):
            began = time.perf_counter()
            sandbox.pause()
            paused = time.perf_counter()
            assert sandbox.info().state == "paused"
            time.sleep(0.3)  # a spare process gets ready meanwhile
            asked = time.perf_counter()
            assert ask() == answer
            resumed = time.perf_counter()
            assert ask() == answer
            runs.append(time.perf_counter() - resumed)
            resumes.append(resumed - asked)
            pauses.append(paused - began)
    medians = [statistics.median(times) * 1000 for times in (pauses, resumes, runs)]
    return ResumeRow(name, isolation, *medians)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    table = Table("sandbox", "isolation", "pause ms", "resume ms", "the same, running, ms")
    for row in resume_rows(parser.parse_args().rounds):
        table.add_row(*row[:2], *(f"{value:.1f}" for value in row[2:]))
    Console().print(table)


if __name__ == "__main__":
    main()
