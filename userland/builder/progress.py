"""The display of a running build.

On a terminal, it shows one line per recipe with its step and elapsed times. Elsewhere, it prints
one plain line per event, for a log. Rule: both get the same events, which may come from any
thread.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

State = Literal["waiting", "working", "built", "cached", "failed"]
_MARKS: dict[State, tuple[str, str]] = {
    "waiting": ("·", "dim"),
    "working": ("▸", "cyan"),
    "built": ("✓", "green"),
    "cached": ("✓", "dim green"),
    "failed": ("✗", "red"),
}


class Progress(Protocol):
    """Receives the events of a build."""

    def add(self, name: str, version: str) -> None:
        """A recipe takes part in this build."""

    def step(self, name: str, step: str) -> None:
        """The recipe begins a step."""

    def end(self, name: str, state: State, note: str) -> None:
        """The recipe ends."""

    def say(self, message: str) -> None:
        """A message about the whole build."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def progress_on(console: Console) -> Progress:
    """The display that suits the console."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)


def seconds_text(seconds: float) -> str:
    """The time as text: 4.2 s, 1 min 05 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


@dataclass
class _Row:
    version: str
    state: State = "waiting"
    text: str = "waiting"
    began: float = 0.0
    step_began: float = 0.0
    ended: float = 0.0
    spent: list[tuple[str, float]] = field(default_factory=list)

    def step(self, step: str, now: float) -> None:
        self._close(now)
        self.state, self.text, self.step_began = "working", step, now
        self.began = self.began or now

    def end(self, state: State, note: str, now: float) -> None:
        self._close(now)
        self.state, self.text, self.ended = state, note or state, now
        self.began = self.began or now

    def _close(self, now: float) -> None:
        if self.state == "working":
            self.spent.append((self.text, now - self.step_began))


class _Rows:
    """What both displays have: a row for each recipe, and a lock."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, _Row] = {}
        self._guard = threading.Lock()

    def add(self, name: str, version: str) -> None:
        with self._guard:
            self._rows[name] = _Row(version)

    def say(self, message: str) -> None:
        self._console.print(Text(message), soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        """End the display."""


class PlainProgress(_Rows):
    """One line per event."""

    def step(self, name: str, step: str) -> None:
        with self._guard:
            row = self._rows[name]
            row.step(step, time.monotonic())
            before = (
                f"  ({row.spent[-1][0]}: {seconds_text(row.spent[-1][1])})" if row.spent else ""
            )
        self.say(f"{name} {row.version}".strip() + f": {step}{before}")

    def end(self, name: str, state: State, note: str) -> None:
        with self._guard:
            row = self._rows[name]
            row.end(state, note, time.monotonic())
        title = f"{name} {row.version}".strip()
        elapsed = f"  ({seconds_text(row.ended - row.began)})" if state != "cached" else ""
        self.say(f"{title}: {state}{', ' if note else ''}{note}{elapsed}")


class LiveProgress(_Rows):
    """A table on a terminal, redrawn while steps run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(
            console=console, get_renderable=self._table, refresh_per_second=5, transient=False
        )

    def step(self, name: str, step: str) -> None:
        with self._guard:
            self._rows[name].step(step, time.monotonic())

    def end(self, name: str, state: State, note: str) -> None:
        with self._guard:
            self._rows[name].end(state, note, time.monotonic())

    def _table(self) -> Table:
        now = time.monotonic()
        table = Table.grid(padding=(0, 2))
        with self._guard:
            for name, row in self._rows.items():
                mark, style = _MARKS[row.state]
                step = seconds_text(now - row.step_began) if row.state == "working" else ""
                total = ""
                if row.began and row.state != "cached":
                    total = seconds_text((row.ended or now) - row.began)
                table.add_row(
                    Text(mark, style=style),
                    Text(f"{name} {row.version}".strip()),
                    Text(row.text, style=style, overflow="ellipsis", no_wrap=True),
                    Text(step, style="dim"),
                    Text(total),
                )
        return table

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def _close(self) -> None:
        self._live.stop()
