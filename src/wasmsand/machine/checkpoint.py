"""Storing a program that has prepared itself, so that later starts begin from that point.

Owns the run of a program up to its checkpoint, and the conditions for storing it. Rules: the run
depends only on the image and the random numbers it is given: the sandbox's clock stands still, and
the environment is fixed. What the kernel keeps for a process (open files, signal actions,
children) is not part of its memory and would be missing after a start, so a process that has any
is refused. A program that has written output is refused too, because later starts would lack it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

from wasmsand.engine.abilities import MemoryImage
from wasmsand.engine.protocol import Engine, Instance
from wasmsand.kernel.clock import SECOND, Clock, ManualClock
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.machine import Machine, MachineOptions, timer_service

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "TZ": "CHECKPOINT0", "LC_ALL": "C.UTF-8"}
"""The environment during the run. No user has this time zone, so after a start the libc reads
TZ again."""
_DIRECTORY = "/"
_EPOCH_NS = 1_000_000_000_000_000_000
"""The time during the run: a fixed date in 2001."""
_UMASK = 0o022
_MEMORY_BYTES = 2 << 30
"""A preparation may need more memory than a sandbox has: it imports all packages."""
_STANDARD_FILES = frozenset({0, 1, 2})
_PATIENCE_NS = 300 * SECOND
_SHOWN_BYTES = 2000

_Taken = TypeVar("_Taken")


class CheckpointFailed(Exception):
    """The program cannot be stored; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A prepared program."""

    memory: bytes
    variables: Mapping[str, int]
    """The values of the exported mutable globals."""


def run_to_checkpoint(
    path: str,
    environ: Mapping[str, str],
    *,
    image: FrozenTree,
    engine: Engine | None = None,
) -> Checkpoint:
    """Run the program until it calls `checkpoint`. The same input gives the same result. Raises
    `CheckpointFailed`."""
    machine = _machine(image, engine, _predictable())

    def take(instance: Instance) -> Checkpoint:
        memory = instance.read(0, instance.memory_size())
        return Checkpoint(memory, instance.exported_variables())

    return _run(machine, path, environ, take)


def capture_at_checkpoint(
    path: str, entry: str, *, image: FrozenTree, engine: Engine | None = None
) -> MemoryImage:
    """Run a program of the image, with unpredictable random numbers, until it calls
    `checkpoint`; return its memory, with which later instances can start at `entry`.

    Raises `CheckpointFailed`, and `OSError` if the host cannot capture memory images.
    """
    machine = _machine(image, engine, os.urandom)
    images = machine.engine.abilities.memory_images

    def take(program: Instance) -> MemoryImage:
        return images.capture(program, stack=False, entry=entry)

    return _run(machine, path, ENVIRONMENT, take)


def _machine(image: FrozenTree, engine: Engine | None, random: Callable[[int], bytes]) -> Machine:
    options = MachineOptions(limits=Limits(memory_limit_bytes=_MEMORY_BYTES))
    clock = ManualClock(_EPOCH_NS, _EPOCH_NS)
    machine = Machine(options, image=image, engine=engine, clock=clock)
    machine.kernel.random = random
    return machine


def _run(
    machine: Machine,
    path: str,
    environ: Mapping[str, str],
    take: Callable[[Instance], _Taken],
) -> _Taken:
    """Run the program to its checkpoint and return what `take` makes of its instance."""
    taken: list[_Taken] = []
    obstacles: list[str] = []
    failures: list[OSError] = []

    def reached(process: Process, instance: Instance) -> None:
        obstacles.extend(_obstacles(machine, process))
        try:
            taken.append(take(instance))
        except OSError as failure:
            failures.append(failure)

    machine.kernel.checkpoint_reached = reached
    patience = _Patience(machine)
    try:
        completed = machine.run(CommandRequest((path,), environ, _DIRECTORY))
    except KernelError as error:
        patience.require(path, error)
        raise
    finally:
        patience.end()
        machine.close()
        machine.kernel.checkpoint_reached = None  # break the reference cycle around what was taken
    if failures:
        raise failures[0]
    printed = (completed.stdout + completed.stderr)[:_SHOWN_BYTES].decode("utf-8", "replace")
    if not taken:
        patience.require(path)
        raise CheckpointFailed(
            f"{path} ended with {completed.exit_code} before it reached a checkpoint: {printed}"
        )
    if printed:
        obstacles.append(f"it has written: {printed}")
    if obstacles:
        raise CheckpointFailed(f"{path} cannot be stored: {'; '.join(obstacles)}")
    return taken[0]


class _Patience:
    """A limit of host time for the run, because the machine's own clock stands still."""

    def __init__(self, machine: Machine) -> None:
        host_time = Clock()
        self._machine = machine
        self._is_over = False
        self._timers = timer_service(machine.engine, host_time)
        self._timers.arm(self, host_time.monotonic() + _PATIENCE_NS)

    def fire_timers(self) -> None:
        """The time is up."""
        self._is_over = True
        self._machine.close()

    def require(self, path: str, cause: Exception | None = None) -> None:
        """Raise `CheckpointFailed` if the time is up."""
        if self._is_over:
            seconds = _PATIENCE_NS // SECOND
            raise CheckpointFailed(f"{path} reached no checkpoint within {seconds} s") from cause

    def end(self) -> None:
        """The run is over."""
        self._timers.cancel(self)


def _obstacles(machine: Machine, process: Process) -> list[str]:
    """What the kernel holds for the process that it does not hold for a new one."""
    kernel, signals = machine.kernel, process.signals
    found = []
    if further := sorted(set(process.fds) - _STANDARD_FILES):
        found.append(f"open files: {', '.join(map(str, further))}")
    if missing := sorted(_STANDARD_FILES - set(process.fds)):
        found.append(f"closed standard files: {', '.join(map(str, missing))}")
    if process.cwd != kernel.namespace.root:
        found.append("another working directory")
    if process.umask != _UMASK:
        found.append(f"umask {process.umask:03o}")
    if handled := signals.caught_set() | signals.ignored_set():
        found.append(f"signal actions: {_signal_names(handled)}")
    if signals.mask:
        found.append(f"blocked signals: {_signal_names(signals.mask)}")
    if signals.pending:
        found.append(f"pending signals: {_signal_names(signals.pending)}")
    if process.children or process.parent is not kernel.init:
        found.append("child processes")
    if len(process.threads) > 1:
        found.append("threads")
    if process.real_timer_deadline:
        found.append("a timer")
    return found


def _signal_names(signals: int) -> str:
    return ", ".join(signal.name for signal in Signal if signals >> (signal - 1) & 1)


def _predictable() -> Callable[[int], bytes]:
    """A pseudo-random source that always produces the same bytes."""
    blocks = (hashlib.sha256(number.to_bytes(8, "little")).digest() for number in count())
    rest = bytearray()

    def take(size: int) -> bytes:
        while len(rest) < size:
            rest.extend(next(blocks))
        taken = bytes(rest[:size])
        del rest[:size]
        return taken

    return take
