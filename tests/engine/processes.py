"""The descendants of this process, from Linux' /proc."""

from __future__ import annotations

import os
from pathlib import Path


def _parents() -> dict[int, int]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                found[int(entry.name)] = int(fields[1])
    return found


def descendants(pid: int | None = None) -> set[int]:
    """The living descendants of a process, by default of this one."""
    parents, found = _parents(), {pid or os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid or os.getpid()}


def compilers() -> set[int]:
    """The living processes that compile: grandchildren, for which their parents wait."""
    parents, own = _parents(), os.getpid()
    return {pid for pid, parent in parents.items() if parents.get(parent) == own}


def alive(pid: int) -> bool:
    return pid in _parents()
