"""Reading through a mount, beside the same files in the sandbox and on the host.

    python -m bench.mounts

Each row is the median of several runs, in milliseconds, of one command that the sandbox runs. The
last column is the same command natively, if the host has the program.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from wasmsand import Sandbox

_RUNS: Final = 7
_COMMANDS: Final = (
    ("nothing", "true"),
    ("stat 1 file", "stat {}/0/0 > /dev/null"),
    ("find 2,000 files", "find {} -type f | wc -l"),
    ("read 200 files of 1 KiB", "cat {}/0/* {}/1/* > /dev/null"),
    ("read one file of 64 MiB", "cat {}/big > /dev/null"),
    ("read it again", "cat {}/big > /dev/null"),
)
_MODES: Final = ("read-only", "read-write", "overlay")


def _fill(place: Path) -> None:
    for directory in range(20):
        (place / str(directory)).mkdir()
        for number in range(100):
            (place / str(directory) / str(number)).write_bytes(b"x" * 1024)
    (place / "big").write_bytes(bytes(range(256)) * (64 << 12))


def _native(command: str) -> object:
    return subprocess.run(["bash", "-c", command], capture_output=True)


def _median(act: Callable[[str], object], command: str) -> float:
    times = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        act(command)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as host, Sandbox(fs_limit_bytes=256 << 20) as sandbox:
        place = Path(host)
        _fill(place)
        sandbox.files.upload(host, "/own")
        sandbox.mount("/mnt/first", host)  # loads the code
        times: dict[str, float] = {}
        for mode in _MODES:
            began = time.perf_counter()
            sandbox.mount(f"/mnt/{mode}", host, mode=mode)
            times[mode] = (time.perf_counter() - began) * 1000
        print("mounting:", ", ".join(f"{mode} {ms:.2f} ms" for mode, ms in times.items()))
        print(
            f"{'':26}{'in sandbox':>12}" + "".join(f"{mode:>12}" for mode in _MODES), "    native"
        )
        for name, command in _COMMANDS:
            places = ("/own", *(f"/mnt/{mode}" for mode in _MODES))
            row = [_median(sandbox.commands.run, command.replace("{}", at)) for at in places]
            row.append(_median(_native, command.replace("{}", host)))
            print(f"{name:26}" + "".join(f"{ms:12.2f}" for ms in row))


if __name__ == "__main__":
    main()
