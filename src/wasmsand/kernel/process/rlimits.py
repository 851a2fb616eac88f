"""Resource limits of a process.

Owns the RLIMIT_ table. Rules: soft <= hard; only uid 0 may raise a hard limit, and never above the
sandbox's own limit. CPU, FSIZE, NPROC, NOFILE and AS are enforced; the others are only stored and
reported. AS bounds the memory of the process's program, from its next tick or wait on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import Limits

INFINITY: Final = (1 << 64) - 1

CPU, FSIZE, DATA, STACK, CORE, RSS, NPROC, NOFILE, MEMLOCK, AS = range(10)
LOCKS, SIGPENDING, MSGQUEUE, NICE, RTPRIO, RTTIME = range(10, 16)
COUNT: Final = 16


@dataclass(frozen=True, slots=True)
class Limit:
    """One resource's soft and hard limit."""

    soft: int
    hard: int


class ResourceLimits:
    """The sixteen limits of one process."""

    __slots__ = ("_ceilings", "_limits")

    def __init__(self, limits: list[Limit], ceilings: dict[int, int]) -> None:
        self._limits = limits
        self._ceilings = ceilings

    @staticmethod
    def of_sandbox(limits: Limits) -> ResourceLimits:
        """The limits of a process that the host starts."""
        return ResourceLimits(
            list(_defaults(limits.max_processes, limits.max_open_files)),
            {NPROC: limits.max_processes, NOFILE: limits.max_open_files},
        )

    def get(self, resource: int) -> Limit:
        """The limit of `resource`; EINVAL if there is none."""
        if not 0 <= resource < COUNT:
            raise KernelError(Errno.EINVAL)
        return self._limits[resource]

    def set(self, resource: int, limit: Limit, *, privileged: bool) -> None:
        """Set a limit. EINVAL or EPERM."""
        old = self.get(resource)
        if limit.soft > limit.hard:
            raise KernelError(Errno.EINVAL)
        if limit.hard > old.hard and not privileged:
            raise KernelError(Errno.EPERM)
        if limit.hard > self._ceilings.get(resource, INFINITY):
            raise KernelError(Errno.EPERM, "above the sandbox's own limit")
        self._limits[resource] = limit

    @property
    def file_size(self) -> int:
        """RLIMIT_FSIZE, soft."""
        return self._limits[FSIZE].soft

    @property
    def address_space(self) -> int:
        """RLIMIT_AS, soft."""
        return self._limits[AS].soft

    @property
    def processes(self) -> int:
        """RLIMIT_NPROC, soft."""
        return self._limits[NPROC].soft

    def copy(self) -> ResourceLimits:
        """A copy for a forked child."""
        return ResourceLimits(list(self._limits), self._ceilings)


@lru_cache(maxsize=64)
def _defaults(processes: int, open_files: int) -> tuple[Limit, ...]:
    """The initial limits of a process."""
    limits = [Limit(INFINITY, INFINITY)] * COUNT
    limits[STACK] = Limit(8 << 20, INFINITY)
    limits[CORE] = Limit(0, INFINITY)
    limits[NPROC] = Limit(processes, processes)
    limits[NOFILE] = Limit(open_files, open_files)
    limits[MEMLOCK] = Limit(8 << 20, 8 << 20)
    limits[SIGPENDING] = Limit(64, 64)
    limits[MSGQUEUE] = Limit(819200, 819200)
    limits[NICE] = Limit(0, 0)
    limits[RTPRIO] = Limit(0, 0)
    return tuple(limits)
