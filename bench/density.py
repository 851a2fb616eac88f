"""Many sandboxes on one host: `python -m bench.density`.

Creates idle sandboxes, and measures memory per sandbox and the time of `echo` in one more sandbox:
alone, beside the idle ones, and beside idle and busy ones. Rules: an idle sandbox has run one
command; a busy one repeats `echo`. Memory is what the server's processes do not share with others,
at the end minus at the start, over the sandboxes.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence

from bench.served import Driver, family, percentile, served

_MIB = 1 << 20
_SETTLE_SECONDS = 3.0


def held(pid: int) -> int:
    """What the processes of a server hold, in bytes."""
    time.sleep(_SETTLE_SECONDS)
    return sum(used.anonymous_bytes for used in family(pid).values())


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.density", description=__doc__)
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--busy", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--echoes", type=int, default=300)
    arguments = parser.parse_args(argv)
    total = arguments.idle + arguments.busy + 1
    options = ["--workers", str(arguments.workers), "--max-sandboxes", str(total + 10)]
    options += ["--idle-seconds", "36000", "--max-running-commands", str(2 * arguments.busy + 8)]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.workers} workers")
    with served(*options) as (url, pid):
        driver = Driver(url)
        driver.wait_for_workers(arguments.workers)
        (own,) = driver.create(1)
        echo = driver.request("POST", f"{own}/run", {"command": "echo hello"})

        def report(beside: str) -> None:
            times = driver.drive([echo], count=arguments.echoes)
            print(
                f"echo {beside}: p50 {percentile(times, 0.5):.1f} ms, "
                f"p99 {percentile(times, 0.99):.1f} ms",
                flush=True,
            )

        driver.drive([echo], count=20)
        before = held(pid)
        report("alone")
        began, spent = time.perf_counter(), time.process_time()
        paths = driver.create(arguments.idle)
        took = time.perf_counter() - began
        for path in paths:
            driver.drive([driver.request("POST", f"{path}/run", {"command": "true"})], count=1)
        grown = held(pid) - before
        print(
            f"{arguments.idle} idle sandboxes: {grown / arguments.idle / _MIB:.3f} MiB each, "
            f"{(before + grown) / _MIB:.0f} MiB in all; created in {took:.1f} s "
            f"(client CPU {time.process_time() - spent:.1f} s)",
            flush=True,
        )
        report(f"beside {arguments.idle} idle ones")
        busy = driver.create(arguments.busy)
        work = [driver.request("POST", f"{path}/run", {"command": "echo busy"}) for path in busy]
        seconds = max(20.0, arguments.echoes / 10)
        times: list[float] = []
        loaded = threading.Thread(target=lambda: times.extend(driver.drive(work, seconds=seconds)))
        loaded.start()
        time.sleep(1)
        report(f"beside {arguments.idle} idle and {arguments.busy} busy ones")
        loaded.join()
        print(f"the busy ones: {len(times) / seconds:.1f} commands/s in all")
        print(f"memory while busy: {held(pid) / _MIB:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
