"""Programs of the host that are taken along when a machine is copied.

Owns `CapturedSession`: a program with its memory, at one moment, and how it is captured and
revived. Rules: a captured session never runs and never changes; any number of machines can have a
copy. A program is captured in one of two ways. One that rests (`kernel/process/resting.py`) has
nothing on its stack, and its copy enters it again. One that can fork is captured while it forks:
its copy goes on as the parent, whose child has ended already. Whatever else the program depends on
(other processes, threads, sockets) cannot be captured: `CannotCapture` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from wasmsand.engine.protocol import Engine, Instance
from wasmsand.kernel.process.captured import CannotCapture, CapturedProcess, capture
from wasmsand.kernel.process.resting import rest_of

if TYPE_CHECKING:
    from wasmsand.machine.guest import Guest
    from wasmsand.machine.machine import Machine
    from wasmsand.machine.streamed import StreamedProcess

_PATIENCE_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.0001
_COPIES_APART: Final = 1
"""So many copies of the same memory are made without preparing it for more. A first copy takes a
quarter of the time of preparing the memory, and a program that is copied once runs faster with
pages of its own."""


class CapturedSession:
    """A program that waits for the host, with its memory. Used from any thread."""

    __slots__ = ("_copies", "_lock", "instance", "process")

    def __init__(self, process: CapturedProcess, instance: Instance) -> None:
        self.process = process
        self.instance = instance
        """Its memory: an instance that never runs."""
        self._lock = Lock()
        """Held while the memory is looked at, because it may be prepared for sharing."""
        self._copies = 0

    def duplicate(self, machine: Machine) -> Instance:
        """A copy that can run in `machine`. Raises `MemoryError`."""
        with self._lock:
            if self._copies == _COPIES_APART:
                machine.engine.abilities.memory_copies.share(self.instance)
            self._copies += 1
            return _copy(machine, self.instance)

    def differences(self, engine: Engine, base: Instance) -> Iterator[tuple[int, bytes]]:
        """How its memory differs from that of a new instance (see `MemoryCopies`)."""
        with self._lock:
            return engine.abilities.memory_copies.differences(self.instance, base)


def capture_at_rest(machine: Machine, streamed: StreamedProcess) -> CapturedSession:
    """Capture a program that waits for a request. Raises `CannotCapture`, and `MemoryError` if the
    host has no room for the copy."""
    _wait_for_rest(machine, streamed)
    with machine.lock:
        guest = _guest_alone(machine, streamed)
        rest = rest_of(guest.thread)
        if rest is None:
            raise CannotCapture("it does not wait for a request")
        if guest.kept_locals is not None:
            raise CannotCapture("it has had threads")
        process = capture(machine.kernel, guest.process, streamed.inputs)
        if rest.copies == _COPIES_APART:
            machine.engine.abilities.memory_copies.share(guest.instance)
        captured = CapturedSession(process, _copy(machine, guest.instance))
        rest.copies += 1
        return captured


def _wait_for_rest(machine: Machine, streamed: StreamedProcess) -> None:
    """A program that has just answered needs a moment until it rests."""
    until = monotonic() + _PATIENCE_SECONDS
    while monotonic() < until:
        with machine.lock:
            guest = machine.guests.get(streamed.pid)
            if guest is None or guest.thread.dead or rest_of(guest.thread):
                return
        sleep(_PAUSE_SECONDS)


class ForkCapture:
    """Captures a program at its next fork."""

    def __init__(self, machine: Machine, streamed: StreamedProcess) -> None:
        """Raises `CannotCapture` if the program cannot be captured now."""
        self._machine = machine
        self._streamed = streamed
        self._taken: CapturedSession | None = None
        self._failure: Exception | None = None
        with machine.lock:
            self._guest = _guest_alone(machine, streamed)
            self._guest.on_fork = self._forked

    def _forked(self, child: Instance, pid: int) -> None:
        """The program has made a copy of itself, which has not run yet. Under the lock."""
        machine, guest = self._machine, self._guest
        try:
            process = capture(machine.kernel, guest.process, self._streamed.inputs)
            process = replace(process, ended_child=pid)
            self._taken = CapturedSession(process, _copy(machine, child, pid))
        except (CannotCapture, MemoryError) as failure:
            self._failure = failure

    def take(self) -> CapturedSession:
        """What was captured. Raises `CannotCapture`."""
        with self._machine.lock:
            self._guest.on_fork = None
            if self._failure is not None:
                raise self._failure
            if self._taken is None:
                raise CannotCapture("it did not fork")
            return self._taken


def _guest_alone(machine: Machine, streamed: StreamedProcess) -> Guest:
    """The guest of a program that has started nothing that still runs. Needs the lock."""
    guest = machine.guests.get(streamed.pid)
    if guest is None or guest.thread.dead:
        raise CannotCapture("it has ended")
    if not machine.engine.abilities.memory_copies.available:
        raise CannotCapture("this engine cannot copy programs")
    others = [
        process
        for process in machine.kernel.processes
        if process.job == guest.process.job and process is not guest.process and not process.dead
    ]
    if others:
        names = ", ".join(f"{p.name.decode('utf-8', 'replace')} (pid {p.pid})" for p in others)
        raise CannotCapture(f"it has started what still runs: {names}")
    return guest


def _copy(machine: Machine, instance: Instance, fork_result: int | None = None) -> Instance:
    limit = max(instance.memory_size(), machine.kernel.limits.memory_limit_bytes)
    return machine.engine.abilities.memory_copies.duplicate(instance, limit, fork_result)
