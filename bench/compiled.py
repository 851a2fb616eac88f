"""What compiling the kernel gains: `python -m bench.compiled`.

Measures the kernel's sources and its compiled form in turns, each in processes of its own. Rules:
CPU time of the process, the fastest of several runs. `make compiled-kernel` makes the compiled form
(`make bench` does that too).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from wasmsand.compiled_kernel import VARIABLE

_MEASURED: Final = r"""
import json, time
from wasmsand import Sandbox

def best(work, count=1):
    work()
    times = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            work()
        times.append((time.process_time() - began) / count)
    return min(times)

with Sandbox(timeout_ms=120_000) as sandbox:
    run = sandbox.commands.run
    run("mkdir -p t/{1..20}; for f in t/{1..20}/{1..100}; do echo hello > $f; done")
    run("cd t && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm x")
    shell, python = sandbox.shell(), sandbox.python()
    figures = {
        "`run(['true'])`": best(lambda: run(["true"]), 30),
        "`run('echo hi')`": best(lambda: run("echo hi"), 30),
        "`shell().run('echo hi')`": best(lambda: shell.run("echo hi"), 200),
        "`python().run('1')`": best(lambda: python.run("1"), 200),
        "100 times `( : )`": best(lambda: run("for i in {1..100}; do ( : ); done")),
        "20 pipelines of 3": best(lambda: run("for i in {1..20}; do echo a | tr a b | cat; done")),
        "`tar c` of 2,000 files": best(lambda: run("tar cf /tmp/x.tar t")),
        "`find` in 2,000 files": best(lambda: run("find t -newer t/1 > /tmp/found")),
        "`grep -r` in 2,000 files": best(lambda: run("grep -r absent t")),
        "`ls -lR` of 2,000 files": best(lambda: run("ls -lR t > /tmp/listing")),
        "`git status` of 2,000 files": best(lambda: run("cd t && git status > /tmp/status")),
        "10,000 echoes to a file": best(lambda: run("for i in {1..10000}; do echo $i; done > o")),
    }
print(json.dumps(figures))
"""


def _measure(form: str) -> dict[str, float]:
    """Figures of one form, `never` (sources) or `always` (compiled), in a new process."""
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURED],
        env={**os.environ, VARIABLE: form},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.compiled", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="how often both take turns")
    options = parser.parse_args(argv)
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(options.rounds):
        for kept, form in zip(best, ("never", "always"), strict=True):
            for name, seconds in _measure(form).items():
                kept[name] = min(kept.get(name, seconds), seconds)
    print("| | sources | compiled | ratio |\n|---|--:|--:|--:|")
    for name, before in best[0].items():
        after = best[1][name]
        print(f"| {name} | {before * 1e3:.2f} ms | {after * 1e3:.2f} ms | {after / before:.2f}x |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
