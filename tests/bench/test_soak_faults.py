"""A server under faults, for some seconds: the short form of `make soak`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.userland
def test_a_short_soak_with_faults_keeps_nothing_and_breaks_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak_faults", "--minutes", "0.1", "--clients", "3"],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    assert "soak: PASSED" in done.stdout
    assert "workers killed: " in done.stdout
    assert "clients vanished: " in done.stdout
