"""The results as a table on the terminal, as Markdown for the README, or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from bench.memory import IdleMemory


@dataclass(frozen=True, slots=True)
class Row:
    """One case's medians, in seconds."""

    name: str
    wasm: float
    native: float | None

    @property
    def ratio(self) -> float | None:
        """The sandbox's time divided by the native one; None if there is no native one."""
        return self.wasm / self.native if self.native else None


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one run of the benchmark."""

    versions: dict[str, str]
    rows: list[Row]
    memory: list[IdleMemory]

    def as_json(self) -> str:
        """All numbers, unrounded."""
        return json.dumps(asdict(self), indent=2)

    def as_markdown(self) -> str:
        """The table of times and the lines about memory, for a document."""
        lines = ["| | wasm | native | ratio |", "|---|--:|--:|--:|"]
        lines += [f"| {' | '.join(cells)} |" for cells in self._cells("`{}`")]
        lines.append("")
        lines += [_memory_line(memory) for memory in self.memory]
        return "\n".join(lines)

    def print(self, console: Console) -> None:
        """Print a table on the terminal."""
        table = Table(title="wasmsand and native programs, medians", title_justify="left")
        table.add_column("")
        for heading in ("wasm", "native", "ratio"):
            table.add_column(heading, justify="right")
        for cells in self._cells("{}"):
            table.add_row(*cells)
        console.print(table)
        for side, version in self.versions.items():
            console.print(f"{side}: {version}", highlight=False)
        for memory in self.memory:
            console.print(_memory_line(memory), highlight=False)

    def _cells(self, name_format: str) -> list[tuple[str, str, str, str]]:
        return [
            (
                name_format.format(row.name),
                duration(row.wasm),
                "-" if row.native is None else duration(row.native),
                "-" if row.ratio is None else f"{row.ratio:.2f}x",
            )
            for row in self.rows
        ]


def duration(seconds: float) -> str:
    """The time with three significant digits and a unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _memory_line(memory: IdleMemory) -> str:
    count = memory["count"]
    noun = "sandbox" if count == 1 else "sandboxes"
    return (
        f"{count} idle {noun}: the process holds {memory['process_bytes'] / 1e6:.1f} MB, "
        f"{memory['per_sandbox_bytes'] / 1e6:.2f} MB per sandbox"
    )
