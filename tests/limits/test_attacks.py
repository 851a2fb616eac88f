"""Every attack of the table ends in time, within its memory, and a neighbour hardly notices.

Each runs in a process of its own (`python -m tests.limits.attack NAME`), which is killed if it
hangs. The bounds are wide enough for a busy machine, and only tell whether a barrier holds;
`python -m bench.soak` measures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits.attacks import ATTACKS, MIB, OPTIONS, Attack

_REPOSITORY = Path(__file__).resolve().parents[2]
_PROCESS_SECONDS = 90
_LATE_SECONDS = 3.0
_STEP_SECONDS = 20.0
_HONEST_SECONDS = 5.0
_MEMORY_MIB = (OPTIONS.memory_limit_bytes + OPTIONS.fs_limit_bytes) // MIB + 160
"""What the sandbox may use, plus what the host needs for it."""


def test_names_are_unique_and_each_says_what_to_run() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert [
        attack.name for attack in ATTACKS if not attack.shell + attack.python + attack.module
    ] == []


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_contained(attack: Attack) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "tests.limits.attack", attack.name],
        capture_output=True,
        cwd=_REPOSITORY,
        text=True,
        timeout=_PROCESS_SECONDS,
    )
    assert (child.returncode, child.stderr) == (0, "")
    outcome = json.loads(child.stdout)
    assert outcome["late_seconds"] < _LATE_SECONDS
    assert outcome["after_seconds"] < _STEP_SECONDS
    assert outcome["kill_seconds"] < _LATE_SECONDS
    assert outcome["peak_mib"] < _MEMORY_MIB
    assert outcome["honest_longest_seconds"] < _HONEST_SECONDS
