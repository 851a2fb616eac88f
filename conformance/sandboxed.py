"""Running a command in a machine, under the rules that `native.py` has.

Owns the counterpart of `run_native_command`. Rules: on a terminal at which nobody types,
as a suite that is run by hand has one; output is not kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wasmsand.machine import Machine
from wasmsand.machine.terminal import HostTerminal


@dataclass(frozen=True)
class SandboxResult:
    """How a command in a machine ended."""

    exit_code: int
    timed_out: bool
    seconds: float


def run_sandbox_command(
    machine: Machine, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float
) -> SandboxResult:
    """Run to the end; what still runs after `timeout` seconds ends with the machine."""
    began = time.monotonic()
    terminal = machine.open_terminal([word.encode() for word in argv], cwd=cwd, environ=env)
    threading.Thread(target=_discard, args=(terminal,), daemon=True).start()
    exit_code = terminal.wait(timeout)
    seconds = time.monotonic() - began
    if exit_code is None:
        return SandboxResult(124, True, seconds)
    return SandboxResult(exit_code, False, seconds)


def _discard(terminal: HostTerminal) -> None:
    while terminal.read():
        pass
