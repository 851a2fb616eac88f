"""Sets up all barriers of a process, in the required order."""

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
    numbers_are_known,
    prctl,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rights that a process keeps. Missing paths are ignored."""

    readable: Sequence[str] = ()
    """Readable files, and directories with everything below them."""
    writable: Sequence[str] = ()
    """Directories in which existing and unnamed files may be written. The process cannot create or
    remove a name anywhere."""
    executable: Sequence[str] = ()
    """Programs, and the files that the system needs to start them."""
    devices: Sequence[str] = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
    """Devices that may be read and written."""
    network: bool = False
    """Whether the process may make TCP connections and look up names."""
    open_files: int | None = None
    """Most open descriptors; None means what a sandbox needs."""
    file_bytes: int | None = None
    """The largest file that the process may write; None means what a sandbox needs."""
    parent: int | None = None
    """The parent process; when it ends, the system kills this process."""


class ParentGone(Exception):
    """The parent process has already ended."""


@dataclass(frozen=True, slots=True)
class Barriers:
    """The active barriers."""

    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.names) or "none"


def end_with_parent(parent: int) -> Barriers:
    """Give up only new privileges, and end with the parent process. Raises `ParentGone`."""
    if not numbers_are_known():
        return Barriers()
    return Barriers((*_tie_to(parent), *_no_new_privileges()))


def _tie_to(parent: int) -> tuple[str, ...]:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ParentGone
    return ("ends with its parent",)


def _no_new_privileges() -> tuple[str, ...]:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    return ("no new privileges",)


def confine(policy: Policy) -> Barriers:
    """Set up every barrier that this system supports. Call it once, before other threads start.

    Raises `OSError` if a barrier fails, and `ParentGone`.
    """
    if _threads() != 1:
        raise RuntimeError("barriers do not apply to running threads: confine before they start")
    names: list[str] = []
    if limit_resources(
        network=policy.network, open_files=policy.open_files, file_bytes=policy.file_bytes
    ):
        names.append("resource limits")
    if numbers_are_known():
        if policy.parent is not None:
            names += _tie_to(policy.parent)
        names += _no_new_privileges()
        denied = landlock.restrict(_rules(policy), network=policy.network)
        names += [f"landlock: {part}" for part in denied]
        if seccomp.restrict(network=policy.network):
            names.append("seccomp")
    return Barriers(tuple(names))


def _threads() -> int:
    """The number of threads of this process; with /proc, including those of C libraries."""
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
        # Only this process: /proc of other processes shows their environment.
        rules.append((f"/proc/{os.getpid()}", read))
    return rules
