"""One attack, measured: `python -m tests.limits.attack NAME`.

Owns `carry_out`, which tests and the soak share, and `Outcome`. Rules: an attack may be refused,
or ended by its limits; it may raise only a `SandboxError`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.limits.attacks import ATTACKS, BY_NAME, OPTIONS, Attack
from wasmsand import Sandbox, SandboxError
from wasmsand.sdk.opening import open_backend

_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attack."""

    late_seconds: float
    """How long after its time limit the command returned; 0 if before."""
    after_seconds: float
    """How long the host's step took."""
    kill_seconds: float
    """How long `kill()` took."""
    said: str
    """The end of the command's standard error, or the exception."""


def carry_out(attack: Attack, sandbox: Sandbox) -> Outcome:
    """Attack, take the host's step, and kill the sandbox."""
    began = time.monotonic()
    try:
        attack.prepare(sandbox)
        prepared = time.monotonic()
        result = sandbox.commands.run(attack.command, timeout_ms=attack.timeout_ms)
        said = f"exit {result.exit_code} {result.stderr[-200:]}"
    except SandboxError as error:
        prepared, said = began, repr(error)[:300]
    ran = time.monotonic()
    if attack.after is not None:
        attack.after(sandbox)
    stepped = time.monotonic()
    sandbox.kill()
    killed = time.monotonic()
    late = max(0.0, ran - prepared - attack.timeout_ms / 1000)
    return Outcome(late, stepped - ran, killed - stepped, said)


def _resident_mib(name: str) -> int:
    for line in _STATUS.read_text("ascii").splitlines() if _STATUS.exists() else ():
        if line.startswith(name):
            return int(line.split()[1]) // 1024
    return 0


class _Honest(threading.Thread):
    """Another sandbox in this process, which works while the attack runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._sandbox = Sandbox()
        self._sandbox.commands.run("echo hi")
        self._ending = threading.Event()
        self.longest = 0.0

    def run(self) -> None:
        while not self._ending.is_set():
            began = time.monotonic()
            assert self._sandbox.commands.run("echo hi").stdout == "hi\n"
            self.longest = max(self.longest, time.monotonic() - began)
            self._ending.wait(0.02)

    def end(self) -> float:
        """Stop; returns the longest time that one command took."""
        self._ending.set()
        self.join(60)
        self._sandbox.kill()
        return self.longest


def measured(attack: Attack) -> dict[str, object]:
    """The outcome, its memory, and the delay of an honest neighbour."""
    honest = _Honest()
    with Sandbox() as first:
        first.commands.run("python3 -c 1")
    before = _resident_mib("VmRSS")
    honest.start()
    outcome = carry_out(attack, Sandbox.from_backend(open_backend(OPTIONS), OPTIONS))
    longest = honest.end()
    time.sleep(0.3)
    return {
        **asdict(outcome),
        "peak_mib": _resident_mib("VmHWM") - before,
        "kept_mib": _resident_mib("VmRSS") - before,
        "honest_longest_seconds": longest,
    }


def main() -> int:
    """Try the named attacks."""
    for name in sys.argv[1:] or [attack.name for attack in ATTACKS]:
        print(json.dumps({"attack": name, **measured(BY_NAME[name])}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
