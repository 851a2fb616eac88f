"""Memory of idle sandboxes, measured in a fresh process.

`python -m bench.memory COUNT` prints one JSON object. Rules: the compiled programs are
in memory before the count starts, because every sandbox shares them; each counted
sandbox has run a command and waits for the next; memory is the private memory of this
process (USS), because shared pages cost nothing more.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

from wasmsand import Sandbox


class IdleMemory(TypedDict):
    """What idle sandboxes take, in bytes."""

    count: int
    process_bytes: int
    per_sandbox_bytes: float


def private_bytes() -> int:
    """Memory that belongs to this process alone (USS)."""
    total = 0
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            total += int(line.split()[1]) * 1024
    return total


def measure(count: int) -> IdleMemory:
    """Memory with `count` idle sandboxes, in this process."""
    with Sandbox() as warm:
        warm.commands.run("ls / | cat")
    gc.collect()
    before = private_bytes()
    sandboxes = [Sandbox() for _ in range(count)]
    for sandbox in sandboxes:
        sandbox.commands.run("ls / | cat > listing")
    gc.collect()
    after = private_bytes()
    for sandbox in sandboxes:
        sandbox.kill()
    return IdleMemory(count=count, process_bytes=after, per_sandbox_bytes=(after - before) / count)


def measure_in_fresh_process(count: int) -> IdleMemory:
    """`measure` in a new interpreter."""
    output = subprocess.run(
        [sys.executable, "-m", "bench.memory", str(count)],
        cwd=Path(__file__).resolve().parent.parent,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    result: IdleMemory = json.loads(output)
    return result


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
