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

from rich.progress import track

from bench.peers.others import VERSIONS, Native, Outcome, Runner, Wasmsand, bashkit, just_bash
from bench.peers.probes import PROBES, Probe

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "comparison.md"
BEGIN, END = "<!-- probes: begin -->", "<!-- probes: end -->"
ROUNDS: Final = 20
TIMED: Final = {
    "a new sandbox runs `echo hi`": "echo hi",
    "a new sandbox runs `seq 20000 \\| sort -rn \\| head -1`": "seq 20000 | sort -rn | head -1",
    "a new sandbox runs `python3 -c 'print(1)'`": "python3 -c 'print(1)'",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the probes in every sandbox, and print or write the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    given = parser.parse_args(argv)
    with ExitStack() as stack:
        native = Native(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        runners: list[Runner] = [Wasmsand()]
        runners += [stack.enter_context(just_bash()), stack.enter_context(bashkit())]
        passed = {
            runner.name: [_passes(runner, probe) for probe in track(PROBES, runner.name)]
            for runner in runners
        }
        tables = f"{_groups(passed)}\n\n{_failures(passed)}\n\n{_times([native, *runners])}"
    print(tables)
    if given.write:
        page = PAGE.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", "utf-8")
    return 0


def _passes(runner: Runner, probe: Probe) -> bool:
    return _run(runner, probe.script).stdout == probe.expected


def _run(runner: Runner, script: str) -> Outcome:
    try:
        return runner.run(script)
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
    names = [runner.name for runner in runners]
    lines = [
        f"| median of {ROUNDS}, in ms | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for title, script in TIMED.items():
        for runner in runners:
            _run(runner, script)  # the first one loads what all need
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(ROUNDS):
            for runner in runners:
                outcome = _run(runner, script)
                if outcome.stdout:
                    seconds[runner.name].append(outcome.seconds)
        cells = [
            f"{statistics.median(found) * 1000:.2f}" if len(found) == ROUNDS else "fails"
            for found in seconds.values()
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
