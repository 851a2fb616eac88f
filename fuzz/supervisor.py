"""Targets as child processes, a few at a time.

Rules: children are forked before this process has threads or an engine, so each starts at once,
with all code imported; if a child dies, that is a finding with its current input, and the target
continues in a new child for the rest of its time; children that do not end are killed.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz import findings
from fuzz.findings import Written
from fuzz.target import Target
from fuzz.worker import HUNG_STATUS, CurrentInput, Worker

_GRACE_SECONDS: Final = 30.0
"""How much longer than its time and its slowest input a child may run."""
_WORTH_SECONDS: Final = 1.0
"""A target with less time left than this is not restarted."""


@dataclass
class State:
    """The progress of one target."""

    make: type[Target]
    seconds: float
    """The time that the target has left."""
    inputs: int = 0
    blocks: int = 0
    corpus: int = 0
    starts: int = 0
    running: bool = False
    found: list[Written] = field(default_factory=list)
    signatures: set[str] = field(default_factory=set)
    deadly: set[bytes] = field(default_factory=set)
    """Inputs that ended a child; the next child skips them."""


@dataclass
class _Child:
    state: State
    pid: int
    current: CurrentInput
    began: float
    pipe: int
    rest: bytes = b""
    inputs_before: int = 0


class Supervisor:
    """Runs targets for a given time each."""

    def __init__(self, directory: Path, seed: int, show: Callable[[Sequence[State]], None]) -> None:
        self._directory = directory
        self._seed = seed
        self._show = show
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}

    def run(self, targets: Sequence[type[Target]], seconds: float, jobs: int) -> list[State]:
        """Run all targets, `jobs` at a time, for `seconds` in total."""
        jobs = max(1, min(jobs, len(targets)))
        each = seconds * jobs / len(targets)
        states = [State(make, each) for make in targets]
        waiting = list(states)
        try:
            while waiting or self._children:
                while waiting and len(self._children) < jobs:
                    self._start(waiting.pop(0))
                self._listen()
                waiting += self._reap()
                self._show(states)
        finally:
            for child in self._children.values():
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
        return states

    def _start(self, state: State) -> None:
        current = CurrentInput(state.make.longest)
        reading, writing = os.pipe()
        state.starts += 1
        seed = self._seed * 1000 + state.starts
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _be_worker(state, self._directory, current, writing, seed)
        os.close(writing)
        os.set_blocking(reading, False)
        state.running = True
        child = _Child(state, pid, current, time.monotonic(), reading, b"", state.inputs)
        self._children[reading] = child
        self._selector.register(reading, selectors.EVENT_READ)

    def _listen(self) -> None:
        for key, _ in self._selector.select(0.2):
            child = self._children[key.fd]
            try:
                data = os.read(key.fd, 65536)
            except BlockingIOError:
                continue
            *lines, child.rest = (child.rest + data).split(b"\n")
            for line in lines:
                self._told(child, json.loads(line))

    def _told(self, child: _Child, what: dict[str, Any]) -> None:
        state = child.state
        if "finding" in what:
            kind, first_line, path = what["finding"]
            if what["signature"] in state.signatures:
                return
            state.signatures.add(what["signature"])
            state.found.append(Written(state.make.name, kind, first_line, Path(path)))
            return
        state.inputs = child.inputs_before + what["inputs"]
        state.blocks = max(state.blocks, what["blocks"])
        state.corpus = max(state.corpus, what["corpus"])

    def _reap(self) -> list[State]:
        """Collect ended children; returns the targets to restart."""
        again = []
        for pipe, child in list(self._children.items()):
            state = child.state
            taken = time.monotonic() - child.began
            late = taken > state.seconds + state.make.hang_seconds + _GRACE_SECONDS
            if late:
                os.kill(child.pid, signal.SIGKILL)
            pid, status = os.waitpid(child.pid, 0 if late else os.WNOHANG)
            if not pid:
                continue
            self._listen()
            self._selector.unregister(pipe)
            del self._children[pipe]
            os.close(pipe)
            state.running = False
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, HUNG_STATUS):
                self._died(child, "does not end" if late else f"died with status {code}")
            if code:
                state.deadly.add(child.current.get())
            state.seconds -= taken
            if code and state.seconds > _WORTH_SECONDS:
                again.append(state)
        return again

    def _died(self, child: _Child, how: str) -> None:
        state = child.state
        text = f"the process {how}"
        if text not in state.signatures:
            state.signatures.add(text)
            data = child.current.get()
            written = findings.write(self._directory, state.make.name, data, "crash", text)
            state.found.append(written)


def _be_worker(state: State, directory: Path, current: CurrentInput, pipe: int, seed: int) -> None:
    """Run the target in this child; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills this process
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(directory / f"{state.make.name}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        with open(pipe, "w") as tell:
            worker = Worker(state.make, directory, current, tell, Random(seed))
            worker.run(state.seconds, state.deadly)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
