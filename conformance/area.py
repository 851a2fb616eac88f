"""Where a test runs: a fresh copy of a suite's tree, with a user and a terminal.

Owns what the two sides have in common; `native.py` and `sandboxed.py` are the sides.
Rules, the same for both: an ordinary user in his own group and `users`; a terminal at
which nobody types, as a suite run by hand has one; no environment but what is given;
what the test prints is not kept, only the files it leaves in `results`.
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
    """One test's own copy of everything. All paths are absolute, as the test sees them."""

    @property
    def tree(self) -> str:
        """The suite's tree."""

    @property
    def results(self) -> str:
        """An empty directory for what the test leaves to the harness."""

    @property
    def home(self) -> str:
        """The user's directory."""

    @property
    def temporary(self) -> str:
        """For TMPDIR."""

    @property
    def search_path(self) -> str:
        """For PATH, after the programs under test: the system's, without those that are hidden."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What only this side needs in the environment."""

    def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float
    ) -> Ended:
        """Run to the end; what still runs after `timeout` seconds is ended."""

    def kept(self) -> dict[str, bytes]:
        """The files in `results`, by name."""


def ordinary_environment(area: Area, *, cwd: str, programs: Sequence[str] = ()) -> dict[str, str]:
    """What a user's commands have around them; `programs` are directories to search first."""
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
