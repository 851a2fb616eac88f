"""Attacks and honest work, side by side, for a long time: `python -m bench.soak --minutes 30`.

There are two sides: sandboxes in this process, and sandboxes behind `wasmsand serve` (a child
process, on loopback, with one token for attackers and one for honest tenants). On each side an
attacker works through the tables of `tests/limits`, and honest tenants run commands, use files
and run Python, and record how long each operation took. The command prints a line every minute
and then a verdict. A run passes if the honest 99th percentile and the memory of both processes
stay flat between the first and the last third of the time, and nothing unexpected happened;
otherwise the exit status is 1.

`--try` instead tries every attack once on each side, and prints the outcome of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.soak_sides import LocalSide, ServerSide, Side
from bench.soak_tenants import Attacker, Honest, Journal
from tests.limits.attack import carry_out
from tests.limits.attacks import ATTACKS, BY_NAME, Attack
from tests.limits.client_attacks import CLIENT_ATTACKS

_LATENCY_FACTOR = 2.0
_LATENCY_SLACK_SECONDS = 0.25
"""The p99 of the last third is at most that of the first third, times this, plus this."""
_MEMORY_FACTOR = 1.25
_MEMORY_SLACK_BYTES = 96 * 1024 * 1024
_SAMPLE_SECONDS = 2.0


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` of all values are; 0 if there are no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


class Soak:
    """One run."""

    def __init__(self, sides: Sequence[Side], honest: int, attacks: Sequence[Attack]) -> None:
        self._console = Console()
        self._sides = sides
        self._journal = Journal()
        self._memory: dict[str, list[tuple[float, int]]] = {side.name: [] for side in sides}
        self._workers: list[Honest | Attacker] = []
        for side in sides:
            self._workers += [Honest(side, self._journal, n) for n in range(honest)]
            self._workers.append(Attacker(side, self._journal, attacks))

    def run(self, seconds: float) -> bool:
        """Run for that long; True if the run passed."""
        for side in self._sides:
            side.warm_up()
        self._journal.begin()
        for worker in self._workers:
            worker.start()
        began = time.monotonic()
        minute = 1
        while (elapsed := time.monotonic() - began) < seconds:
            time.sleep(min(_SAMPLE_SECONDS, seconds - elapsed))
            now = time.monotonic() - began
            for side in self._sides:
                self._memory[side.name].append((now, side.resident_bytes()))
            for worker in self._workers:
                worker.look_after()
            if now >= 60 * minute:
                self._print_minute(minute, now)
                minute += 1
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.join()
        return self._verdict(seconds)

    def _print_minute(self, minute: int, now: float) -> None:
        parts = []
        for side in self._sides:
            taken = self._journal.latencies(side.name, now - 60, now)
            resident = self._memory[side.name][-1][1]
            parts.append(
                f"{side.name}: {len(taken)} honest, p50 {percentile(taken, 0.5) * 1000:.0f} ms, "
                f"p99 {percentile(taken, 0.99) * 1000:.0f} ms, RSS {resident >> 20} MiB"
            )
        errors, attacks = len(self._journal.errors), self._journal.attacks
        print(
            f"minute {minute}: {'; '.join(parts)}; {attacks} attacks, {errors} errors", flush=True
        )

    def _verdict(self, seconds: float) -> bool:
        for side in self._sides:
            if bugs := side.bugs():
                self._journal.error(f"{side.name}: {bugs} bugs were logged")
        well = not self._journal.errors
        for error in self._journal.errors[:20]:
            print(f"unexpected: {error}")
        third = seconds / 3
        for side in self._sides:
            first = percentile(self._journal.latencies(side.name, 0, third), 0.99)
            last = percentile(self._journal.latencies(side.name, 2 * third, seconds + 60), 0.99)
            before = median([size for at, size in self._memory[side.name] if at <= third] or [0])
            after = median([size for at, size in self._memory[side.name] if at > 2 * third] or [0])
            flat = last <= first * _LATENCY_FACTOR + _LATENCY_SLACK_SECONDS
            kept = after <= before * _MEMORY_FACTOR + _MEMORY_SLACK_BYTES
            well = well and flat and kept
            print(
                f"{side.name}: honest p99 {first * 1000:.0f} ms in the first third, "
                f"{last * 1000:.0f} ms in the last ({'flat' if flat else 'NOT FLAT'}: at most "
                f"{_LATENCY_FACTOR:g} times and {_LATENCY_SLACK_SECONDS * 1000:.0f} ms more); "
                f"RSS {int(before) >> 20} MiB, then {int(after) >> 20} MiB "
                f"({'flat' if kept else 'NOT FLAT'}: at most {_MEMORY_FACTOR:g} times and "
                f"{_MEMORY_SLACK_BYTES >> 20} MiB more)"
            )
        late = self._journal.latest
        print(
            f"latest return of a command after its time limit: {late[0] * 1000:.0f} ms ({late[1]})"
        )
        print(
            f"soak: {'PASSED' if well else 'FAILED'}: {seconds / 60:.1f} minutes, "
            f"{self._journal.attacks} attacks, {self._journal.count} honest operations, "
            f"{len(self._journal.errors)} unexpected errors"
        )
        return well


def try_each(sides: Sequence[Side], attacks: Sequence[Attack]) -> None:
    """Try every attack once on every side, and print a table."""
    table = Table("attack", "side", "late s", "step s", "kill s", "RSS MiB", "said")
    for side in sides:
        side.warm_up()
        for attack in attacks:
            outcome = carry_out(attack, side.hostile_sandbox())
            figures = (outcome.late_seconds, outcome.after_seconds, outcome.kill_seconds)
            table.add_row(
                attack.name,
                side.name,
                *(f"{figure:.2f}" for figure in figures),
                str(side.resident_bytes() >> 20),
                outcome.said[-60:],
            )
        if side.address is not None:
            for name, client_attack in CLIENT_ATTACKS.items():
                began = time.monotonic()
                client_attack(side.address, side.hostile_token)
                taken = f"{time.monotonic() - began:.2f}"
                table.add_row(name, side.name, "", taken, "", str(side.resident_bytes() >> 20), "")
    Console().print(table)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--honest", type=int, default=2, help="honest tenants on each side")
    parser.add_argument("--side", choices=("both", "local", "serve"), default="both")
    parser.add_argument("--attack", action="append", help="only these attacks (default: all)")
    parser.add_argument("--skip", action="append", default=[], help="all attacks but these")
    parser.add_argument("--try", action="store_true", dest="each", help="try each attack once")
    arguments = parser.parse_args(words)
    chosen = [BY_NAME[name] for name in arguments.attack] if arguments.attack else ATTACKS
    attacks = [attack for attack in chosen if attack.name not in arguments.skip]
    sides: list[Side] = []
    try:
        if arguments.side in ("both", "local"):
            sides.append(LocalSide())
        if arguments.side in ("both", "serve"):
            sides.append(ServerSide())
        if arguments.each:
            try_each(sides, attacks)
            return 0
        return 0 if Soak(sides, arguments.honest, attacks).run(arguments.minutes * 60) else 1
    finally:
        for side in sides:
            side.close()


if __name__ == "__main__":
    sys.exit(main())
