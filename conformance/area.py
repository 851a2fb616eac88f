"""Where a test runs: a fresh copy of a suite's tree, with a user and a terminal.

Owns the interface that both sides implement; `native.py` and `sandboxed.py` are the sides.
Rules, the same for both: a test runs as an ordinary user, who has a group of his own and is in
`users`; it has a terminal, as a suite that is run by hand has, but nobody types; its environment
holds only what is given; what it prints is not kept, only the files that it leaves in `results`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    exit_code: int
    timed_out: bool
    seconds: float


class Area(Protocol):
    """A private copy of everything for one test. Paths are absolute, as the test sees them."""

    @property
    def tree(self) -> str:
        """The suite's tree."""

    @property
    def results(self) -> str:
        """An empty directory, for files that the test leaves to the harness."""

    @property
    def home(self) -> str:
        """The user's directory."""

    @property
    def temporary(self) -> str:
        """The value of TMPDIR."""

    @property
    def search_path(self) -> str:
        """The end of PATH, after the programs under test: the system's, without hidden ones."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables that only this side needs."""

    def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float
    ) -> Ended:
        """Run the command to its end; kill it after `timeout` seconds."""

    def kept(self) -> dict[str, bytes]:
        """The files in `results`, by name."""


def ordinary_environment(area: Area, *, cwd: str, programs: Sequence[str] = ()) -> dict[str, str]:
    """The environment of a user's commands; `programs` are directories to search first."""
    return {
        "PATH": ":".join([*programs, area.search_path]),
        "HOME": area.home,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "TMPDIR": area.temporary,
        "PWD": cwd,
        **area.variables,
    }
