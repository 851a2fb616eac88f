"""Throughput of commands with 1 and more workers: `python -m bench.workers`.

The same sandboxes and clients for each number of workers; each client repeats `echo` in a sandbox
of its own. Prints commands per second, and the CPU time of a command in the front process, in the
workers and in the client. Rules: rounds alternate between the numbers of workers, so that a load
from outside hurts all alike; the best round of each counts. "Calculated" is what the busiest
process allows if each process has a core of its own: it does not depend on other load.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.served import Driver, family, percentile, served


@dataclass(frozen=True)
class Round:
    """One measurement."""

    workers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    front_cpu_ms: float
    """Per command, like the following. 0 with one process."""
    workers_cpu_ms: float
    client_cpu_ms: float
    busiest_cpu_ms: float
    """Of the process that uses most."""


def measured(workers: int, clients: int, seconds: float) -> Round:
    """Start a server and drive it."""
    with served("--workers", str(workers)) as (url, pid):
        driver = Driver(url)
        driver.wait_for_workers(workers)
        paths = driver.create(clients, at_once=1)
        requests = [driver.request("POST", f"{p}/run", {"command": "echo hello"}) for p in paths]
        driver.drive(requests, count=clients * 10)
        before, own, began = family(pid), time.process_time(), time.perf_counter()
        times = driver.drive(requests, seconds=seconds)
        took = time.perf_counter() - began
        own = time.process_time() - own
        after = family(pid)
    spent = {
        each: used.cpu_seconds - before[each].cpu_seconds
        for each, used in after.items()
        if each in before
    }
    per = 1000 / len(times)
    front = spent.pop(pid) if workers > 1 else 0.0
    return Round(
        workers=workers,
        per_second=len(times) / took,
        p50_ms=percentile(times, 0.5),
        p99_ms=percentile(times, 0.99),
        front_cpu_ms=front * per,
        workers_cpu_ms=sum(spent.values()) * per,
        client_cpu_ms=own * per,
        busiest_cpu_ms=max([front, *spent.values()]) * per,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.workers", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    best: dict[int, Round] = {}
    for _ in range(arguments.rounds):
        for workers in arguments.workers:
            found = measured(workers, arguments.clients, arguments.seconds)
            if workers not in best or found.per_second > best[workers].per_second:
                best[workers] = found
    if arguments.json:
        print(json.dumps([asdict(each) for each in best.values()], indent=1))
        return 0
    first = best[arguments.workers[0]]
    print(f"{arguments.clients} clients, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for each in best.values():
        print(
            f"workers {each.workers}: {each.per_second:7.1f} commands/s "
            f"({each.per_second / first.per_second:.2f}x), p50 {each.p50_ms:.1f} ms, p99 "
            f"{each.p99_ms:.1f} ms; CPU per command: front {each.front_cpu_ms:.2f}, workers "
            f"{each.workers_cpu_ms:.2f}, client {each.client_cpu_ms:.2f} ms; calculated "
            f"{1000 / each.busiest_cpu_ms:.0f} commands/s "
            f"({first.busiest_cpu_ms / each.busiest_cpu_ms:.2f}x)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
