"""The command `python -m bench.peers`."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.peers.others import (
    LIVE_PYTHON,
    LIVE_SHELL,
    PYTHON,
    SHELL,
    VERSIONS,
    Native,
    Outcome,
    Runner,
    Wasmsand,
    others,
)
from bench.peers.probes import PROBES, Probe

ROUNDS: Final = 20
_ENOUGH_SECONDS: Final = 10.0
"""A sandbox that has taken so long for a row is not asked again."""
_TURNS: Final = "for ((i = 0; i < 1000; i++)); do :; done; echo $i"
_FIB: Final = "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(20))"
TIMED: Final = (
    ("a new sandbox runs `echo hi`", SHELL, "echo hi"),
    (
        "a new sandbox runs `seq 20000 \\| sort -rn \\| head -1`",
        SHELL,
        "seq 20000 | sort -rn | head -1",
    ),
    ("a new sandbox runs Python's `print(1)`", PYTHON, "print(1)"),
    ("a live shell runs `echo hi`", LIVE_SHELL, "echo hi"),
    ("a live shell runs a loop of 1,000 turns", LIVE_SHELL, _TURNS),
    ("a live Python runs `print(1)`", LIVE_PYTHON, "print(1)"),
    ("a live Python computes fib(20)", LIVE_PYTHON, _FIB),
)
"""Rows: a title, what runs it, and the script or code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything in every sandbox, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print Markdown; always the case")
    parser.parse_args(argv)
    print(measured())
    return 0


def measured() -> str:
    """Run everything in every sandbox; returns the tables."""
    with ExitStack() as stack:
        native = Native(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        runners: list[Runner] = [Wasmsand()]
        runners += stack.enter_context(others(lambda text: print(text, file=sys.stderr)))
        shells = [runner for runner in runners if SHELL in runner.kinds]
        passed = {runner.name: [_passes(runner, probe) for probe in PROBES] for runner in shells}
        return f"{_groups(passed)}\n\n{_failures(passed)}\n\n{_times([native, *runners])}"


def _passes(runner: Runner, probe: Probe) -> bool:
    return _run(runner, SHELL, probe.script).stdout == probe.expected


def _run(runner: Runner, kind: str, text: str) -> Outcome:
    try:
        return runner.run(kind, text)
    except Exception as error:  # a sandbox that breaks has not passed
        return Outcome("", 0.0, repr(error))


def _groups(passed: Mapping[str, Sequence[bool]]) -> str:
    versions = [f"{name} {VERSIONS[name]}" if name in VERSIONS else name for name in passed]
    lines = [f"| probes | {' | '.join(versions)} |", "|---" * (len(passed) + 1) + "|"]
    groups = dict.fromkeys(probe.group for probe in PROBES)
    for group in groups:
        members = [index for index, probe in enumerate(PROBES) if probe.group == group]
        cells = [f"{sum(found[i] for i in members)} of {len(members)}" for found in passed.values()]
        lines.append(f"| {group} | {' | '.join(cells)} |")
    cells = [f"**{sum(found)} of {len(found)}**" for found in passed.values()]
    lines.append(f"| all | {' | '.join(cells)} |")
    return "\n".join(lines)


def _failures(passed: Mapping[str, Sequence[bool]]) -> str:
    lines = []
    for name, found in passed.items():
        failed = [probe.name for probe, good in zip(PROBES, found, strict=True) if not good]
        lines.append(f"- {name} fails: {', '.join(failed) or 'none'}.")
    return "\n".join(lines)


def _times(runners: Sequence[Runner]) -> str:
    heads = [f"{r.name} {VERSIONS[r.name]}" if r.name in VERSIONS else r.name for r in runners]
    lines = [
        f"| median of {ROUNDS}, in ms | {' | '.join(heads)} |",
        "|---" + "|--:" * len(runners) + "|",
    ]
    for title, kind, text in TIMED:
        able = [runner for runner in runners if kind in runner.kinds]
        medians = _medians(able, kind, text)
        cells = [medians.get(runner.name, "-") for runner in runners]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _medians(runners: Sequence[Runner], kind: str, text: str) -> dict[str, str]:
    """The median time of each sandbox, in milliseconds. They take turns; the first time, which
    loads what all need, does not count. Only answers count that are the same as the first one."""
    wanted = _run(runners[0], kind, text).stdout
    seconds: dict[str, list[float]] = {}
    for runner in runners:
        if _run(runner, kind, text).stdout == wanted:
            seconds[runner.name] = []
    for _ in range(ROUNDS):
        for runner in runners:
            found = seconds.get(runner.name)
            if found is not None and sum(found) < _ENOUGH_SECONDS:
                outcome = _run(runner, kind, text)
                found.append(outcome.seconds if outcome.stdout == wanted else float("inf"))
    medians = {name: statistics.median(found) * 1000 for name, found in seconds.items()}
    return {r.name: f"{medians[r.name]:.3g}" if r.name in medians else "fails" for r in runners}


if __name__ == "__main__":
    sys.exit(main())
