"""The command line of `python -m fuzz`.

The exit status is 0 without findings, 1 with findings, and 2 if the arguments are wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from rich.console import Console
from rich.live import Live
from rich.table import Table

from fuzz import findings
from fuzz.supervisor import State, Supervisor
from fuzz.target import Finding
from fuzz.targets import TARGETS
from fuzz.worker import CurrentInput, Worker

DIRECTORY = Path("build") / "fuzz"
"""Relative to the current directory."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the targets, or repeat a finding."""
    parser = _parser()
    arguments = parser.parse_args(words)
    if arguments.list:
        for name, target in TARGETS.items():
            print(f"{name:<12} {target.about}")
        return 0
    directory: Path = arguments.out
    directory.mkdir(parents=True, exist_ok=True)
    unknown = [name for name in arguments.targets if name not in TARGETS]
    if unknown:
        parser.error(f"unknown target: {', '.join(unknown)}; use one of: {', '.join(TARGETS)}")
    with tempfile.TemporaryDirectory(prefix="wasmsand-fuzz-", ignore_cleanup_errors=True) as room:
        tempfile.tempdir = room  # killed children cannot remove their files
        if arguments.replay is not None:
            return _replay(arguments.replay, directory)
        return _run(arguments, directory)


def _run(arguments: argparse.Namespace, directory: Path) -> int:
    chosen = [TARGETS[name] for name in arguments.targets or TARGETS]
    console = Console()
    began = time.monotonic()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        show = _progress(live, arguments.seconds, began) if console.is_terminal else _nothing
        supervisor = Supervisor(directory, arguments.seed, show)
        states = supervisor.run(chosen, arguments.seconds, arguments.jobs)
    console.print(_table(states))
    written = [found for state in states for found in state.found]
    for found in written:
        console.print(f"{found.target}: {found.kind}: {found.first_line[:200]}", style="red")
        console.print(f"    {found.replay}", soft_wrap=True, highlight=False)
    total = sum(state.inputs for state in states)
    seconds = time.monotonic() - began
    console.print(
        f"fuzz: {len(states)} targets, {total} inputs in {seconds:.0f} s, "
        f"seed {arguments.seed}: {len(written)} findings"
    )
    return 1 if written else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Attack every interface of wasmsand for a given time."
    )
    parser.add_argument(
        "targets", nargs="*", metavar="target", help="the targets to attack (default: all)"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="time for all targets together (default: 60)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(2, os.cpu_count() or 1),
        help="how many targets run at once (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="a different seed tries different inputs"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=DIRECTORY,
        help="directory for findings and corpus (default: build/fuzz)",
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="repeat one finding")
    parser.add_argument("--list", action="store_true", help="list the targets")
    return parser


def _replay(path: Path, directory: Path) -> int:
    name = findings.target_of(path)
    if name not in TARGETS:
        print(f"{path}: unknown target: {name}", file=sys.stderr)
        return 2
    data = path.read_bytes()
    target = TARGETS[name]
    worker = Worker(target, directory, CurrentInput(target.longest), None, Random(0))
    error = worker.replay(data)
    if error is None:
        print(f"{path}: passes now")
        return 0
    print(f"{path}: {findings.kind_of(error)}: {findings.signature(error)}")
    if isinstance(error, Finding):
        print(error)
        return 1
    raise error


def _nothing(_states: Sequence[State]) -> None:
    pass


class _progress:
    """Shows one line while the targets run."""

    def __init__(self, live: Live, seconds: float, began: float) -> None:
        self._live, self._seconds, self._began = live, seconds, began

    def __call__(self, states: Sequence[State]) -> None:
        running = ", ".join(state.make.name for state in states if state.running)
        inputs = sum(state.inputs for state in states)
        found = sum(len(state.found) for state in states)
        taken = time.monotonic() - self._began
        line = (
            f"fuzz {taken:.0f}/{self._seconds:.0f} s: {running}: {inputs} inputs, {found} findings"
        )
        self._live.update(line, refresh=True)


def _table(states: Sequence[State]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("target")
    for title in ("inputs", "blocks reached", "corpus", "starts", "findings"):
        table.add_column(title, justify="right")
    for state in states:
        numbers = (state.inputs, state.blocks, state.corpus, state.starts, len(state.found))
        table.add_row(state.make.name, *(str(number) for number in numbers))
    return table
