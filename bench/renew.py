"""All published timings: `make bench`, or `python -m bench.renew`.

Measures the programs beside native ones, small requests, many live sessions, and other sandboxes,
and writes each table into the page that shows it. Rules: one benchmark at a time; a page is written
when its table is complete, so a run that fails or is interrupted leaves the other tables as they
were. The machine should be quiet: the tables say when it was not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.pages import ROOT, renew

_BUSY_LOAD: Final = 1.0


class Step(NamedTuple):
    """One table."""

    name: str
    module: str
    """Run with `--markdown`, it prints the table."""
    page: str
    mark: str


STEPS: Final = (
    Step("small requests", "bench.sessions", "docs/performance.md", "sessions"),
    Step("live sessions", "bench.live", "docs/performance.md", "live"),
    Step("programs", "bench.run", "README.md", "bench"),
    Step("other sandboxes", "bench.peers", "docs/comparison.md", "probes"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them into their pages."""
    parser = argparse.ArgumentParser(prog="python -m bench.renew", description=__doc__)
    parser.add_argument(
        "--only",
        choices=[step.mark for step in STEPS],
        action="append",
        help="renew only this table; may be given several times",
    )
    parser.add_argument(
        "--print", action="store_true", dest="only_print", help="write into no page"
    )
    given = parser.parse_args(argv)
    write = (lambda *table: None) if given.only_print else renew
    chosen = [step for step in STEPS if given.only is None or step.mark in given.only]
    failed = [step.name for step in chosen if not _renew(step, write)]
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _renew(step: Step, write: Callable[[str, str, str], None]) -> bool:
    load, began = os.getloadavg()[0], time.monotonic()
    print(f"bench: {step.name}, for {step.page}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", step.module, "--markdown"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return False
    minutes = (time.monotonic() - began) / 60
    table = f"{done.stdout.strip()}\n\n{_conditions(load)}"
    print(f"{table}\nbench: {step.name}: {minutes:.1f} minutes", flush=True)
    write(step.page, step.mark, table)
    return True


def _conditions(load: float) -> str:
    machine = f"Measured on {os.cpu_count()} cores"
    return f"{machine}." if load < _BUSY_LOAD else f"{machine}, with other load ({load:.0f})."


if __name__ == "__main__":
    sys.exit(main())
