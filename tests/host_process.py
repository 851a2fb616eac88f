"""What this process holds, by Linux' /proc: memory, mappings, files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def private_bytes() -> int:
    """Memory in RAM that belongs to this process alone."""
    rollup = Path("/proc/self/smaps_rollup").read_text()
    lines = (line.split() for line in rollup.splitlines()[1:])
    return sum(int(words[1]) for words in lines if words[0].startswith("Private_")) * 1024


def mappings() -> int:
    """How many ranges of the address space are mapped."""
    return Path("/proc/self/maps").read_text().count("\n")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@dataclass
class Peak:
    """The most resident bytes that `watched_peak` has seen."""

    resident_bytes: int


@contextmanager
def watched_peak(pause: float = 0.001) -> Iterator[Peak]:
    """Watch this process' resident memory from another thread while the block runs."""
    peak, ended = Peak(resident_bytes()), threading.Event()

    def watch() -> None:
        while not ended.wait(pause):
            peak.resident_bytes = max(peak.resident_bytes, resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
