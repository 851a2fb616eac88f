"""The honest tenants and the attackers of a soak.

Owns `Honest` and `Attacker`, which are threads, and the `Journal` that they write. Rules: an
honest operation checks its result; after an error, which is recorded, the tenant starts again
with a new sandbox; an attack that does not return is recorded once, its thread is abandoned, and
the attacker goes on with the next attack, up to a few times.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from bench.soak_sides import Side
from tests.limits.attack import carry_out
from tests.limits.attacks import Attack
from tests.limits.client_attacks import CLIENT_ATTACKS
from wasmsand import Sandbox, SandboxError

_PAUSE_SECONDS: Final = 0.25
_STUCK_SECONDS: Final = 60.0
"""An attack takes seconds; longer is a hang."""
_MOST_STUCK: Final = 3
_OPERATIONS_PER_SANDBOX: Final = 50
_LATE_SECONDS: Final = 5.0
"""A command that returns this long after its time limit is an error, even on a busy machine."""


class Journal:
    """What happened, recorded by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = 0.0
        self._taken: dict[str, list[tuple[float, float]]] = {}
        self.errors: list[str] = []
        self.attacks = 0
        self.count = 0
        self.latest: tuple[float, str] = (0.0, "none")

    def begin(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def honest(self, side: str, seconds: float) -> None:
        """Record an honest operation."""
        with self._lock:
            at = time.monotonic() - self._began
            self._taken.setdefault(side, []).append((at, seconds))
            self.count += 1

    def attacked(self, name: str, late: float) -> None:
        """Record an attack that returned."""
        with self._lock:
            self.attacks += 1
            self.latest = max(self.latest, (late, name))

    def error(self, text: str) -> None:
        """Record something that must not happen."""
        with self._lock:
            at = time.monotonic() - self._began
            self.errors.append(f"{at:.0f} s: {text[:300]}")

    def latencies(self, side: str, first: float, last: float) -> list[float]:
        """The durations of honest operations that ended between two moments."""
        with self._lock:
            return [taken for at, taken in self._taken.get(side, ()) if first <= at < last]


def _echo(sandbox: Sandbox, number: int) -> None:
    assert sandbox.commands.run(f"echo {number} | cat").stdout == f"{number}\n"


def _files(sandbox: Sandbox, number: int) -> None:
    sandbox.files.write("notes.txt", f"{number}\n" * 100)
    assert sandbox.files.read_text("notes.txt") == f"{number}\n" * 100
    assert "notes.txt" in [entry.name for entry in sandbox.files.list(".")]


def _python(sandbox: Sandbox, number: int) -> None:
    assert sandbox.commands.run(f"python3 -c 'print({number} + 1)'").stdout == f"{number + 1}\n"


def _pipeline(sandbox: Sandbox, number: int) -> None:
    result = sandbox.commands.run("seq 500 | sort -rn | head -n 1")
    assert result.stdout == "500\n"


_WORK: Final[tuple[Callable[[Sandbox, int], None], ...]] = (_echo, _files, _python, _pipeline)


class Honest(threading.Thread):
    """A tenant that does small operations and records how long each took."""

    def __init__(self, side: Side, journal: Journal, number: int) -> None:
        super().__init__(daemon=True, name=f"honest-{side.name}-{number}")
        self._side = side
        self._journal = journal
        self._ending = threading.Event()
        self._began = 0.0

    def stop(self) -> None:
        """End soon."""
        self._ending.set()

    def look_after(self) -> None:
        """Record an operation that does not end."""
        began = self._began
        if began and time.monotonic() - began > _STUCK_SECONDS:
            self._began = 0.0
            self._journal.error(f"{self.name}: an operation takes more than {_STUCK_SECONDS:g} s")

    def join(self, timeout: float | None = _STUCK_SECONDS) -> None:
        super().join(timeout)

    def run(self) -> None:
        number = 0
        while not self._ending.is_set():
            try:
                with self._side.honest_sandbox() as sandbox:
                    for _ in range(_OPERATIONS_PER_SANDBOX):
                        if self._ending.is_set():
                            return
                        number += 1
                        self._operate(sandbox, number)
                        self._ending.wait(_PAUSE_SECONDS)
            except Exception as error:
                self._journal.error(f"{self.name}: {error!r}")
                self._ending.wait(1.0)

    def _operate(self, sandbox: Sandbox, number: int) -> None:
        self._began = began = time.monotonic()
        try:
            _WORK[number % len(_WORK)](sandbox, number)
        finally:
            self._began = 0.0
        self._journal.honest(self._side.name, time.monotonic() - began)


class Attacker:
    """Tries all attacks, again and again, each time in another order."""

    def __init__(self, side: Side, journal: Journal, attacks: Sequence[Attack]) -> None:
        self._side = side
        self._journal = journal
        self._attacks = attacks
        self._random = Random(1)
        self._ending = threading.Event()
        self._stuck = 0
        self._thread: threading.Thread | None = None
        self._current: tuple[str, float] | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(
            target=self._work, daemon=True, name=f"attacker-{self._side.name}"
        )
        self._thread.start()

    def stop(self) -> None:
        """End soon."""
        self._ending.set()

    def join(self) -> None:
        """Wait until the running attack ends."""
        if self._thread is not None:
            self._thread.join(_STUCK_SECONDS)

    def look_after(self) -> None:
        """Abandon an attack that does not return, and go on in another thread."""
        current = self._current
        if current is None or time.monotonic() - current[1] < _STUCK_SECONDS:
            return
        self._current = None
        self._stuck += 1
        self._journal.error(f"{self._side.name}: {current[0]} does not come back")
        if self._stuck < _MOST_STUCK:
            self.start()
        if not self._side.is_well():
            self._journal.error(f"{self._side.name}: the process has died")

    def _work(self) -> None:
        me = threading.current_thread()
        names: list[str | Attack] = [*self._attacks]
        if self._side.address is not None:
            names += [*CLIENT_ATTACKS]
        while True:
            for attack in self._random.sample(names, len(names)):
                if self._ending.is_set() or self._thread is not me:
                    return
                name = attack if isinstance(attack, str) else attack.name
                self._current = name, time.monotonic()
                try:
                    self._attack(attack)
                except SandboxError as error:
                    self._refused(name, error)
                except Exception as error:
                    self._journal.error(f"{self._side.name}: {name}: {error!r}")
                if self._thread is me:
                    self._current = None
                self._ending.wait(_PAUSE_SECONDS)

    def _attack(self, attack: str | Attack) -> None:
        if isinstance(attack, str):
            assert self._side.address is not None
            CLIENT_ATTACKS[attack](self._side.address, self._side.hostile_token)
            self._journal.attacked(attack, 0.0)
            return
        outcome = carry_out(attack, self._side.hostile_sandbox())
        self._journal.attacked(attack.name, outcome.late_seconds)
        if outcome.late_seconds > _LATE_SECONDS:
            late = f"{outcome.late_seconds:.1f} s late"
            self._journal.error(f"{self._side.name}: {attack.name} was {late}")

    def _refused(self, name: str, error: SandboxError) -> None:
        """Whether the server refused: it may refuse a hostile tenant anything, but must answer."""
        if not self._side.is_well():
            self._journal.error(f"{self._side.name}: {name}: {error!r}")
            self._ending.wait(5.0)
