"""All barriers of a process, in the order in which they can be put up."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from wasmsand.confinement import landlock, seccomp
from wasmsand.confinement.resources import limit_resources
from wasmsand.confinement.system_calls import (
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    has_them,
    prctl,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a process keeps. Paths that are not there are left out."""

    readable: Sequence[str] = ()
    """Files, and directories with what is beneath them."""
    writable: Sequence[str] = ()
    """Directories in which files that exist, or have no name, may be written. No name can be
    made or removed anywhere."""
    executable: Sequence[str] = ()
    """Programs, and what the system needs to start them."""
    devices: Sequence[str] = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
    """Read and written."""
    parent: int | None = None
    """The process that is the parent, whose end is this one's."""


class ParentGone(Exception):
    """The parent has ended already."""


@dataclass(frozen=True, slots=True)
class Barriers:
    """What is in force."""

    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.names) or "none"


def confine(policy: Policy) -> Barriers:
    """Put up every barrier that this system has. To be called once, on the only thread.

    Raises `OSError` if one cannot be put up, and `ParentGone`.
    """
    if _threads() != 1:
        raise RuntimeError("barriers hold for the threads to come: confine before others start")
    names: list[str] = []
    if limit_resources():
        names.append("resource limits")
    if has_them():
        if policy.parent is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != policy.parent:
                raise ParentGone
            names.append("ends with its parent")
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        names.append("no new privileges")
        names += [f"landlock: {part}" for part in landlock.restrict(_rules(policy))]
        if seccomp.restrict():
            names.append("seccomp")
    return Barriers(tuple(names))


def _threads() -> int:
    """Of this process, those of C libraries included where the system tells."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _rules(policy: Policy) -> list[tuple[str, int]]:
    read = landlock.READ_FILE | landlock.READ_DIR
    write = read | landlock.WRITE_FILE | landlock.TRUNCATE
    rules = [(path, read) for path in policy.readable]
    rules += [(path, write) for path in policy.writable]
    rules += [(path, landlock.READ_FILE | landlock.EXECUTE) for path in policy.executable]
    rules += [(path, landlock.READ_FILE | landlock.WRITE_FILE) for path in policy.devices]
    if sys.platform == "linux":
        # Those of this process: what others have in /proc tells their environment.
        rules.append((f"/proc/{os.getpid()}", read))
    return rules
