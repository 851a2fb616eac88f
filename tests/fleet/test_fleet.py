"""Runs the tests of `on_a_cluster`, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_MOST_SECONDS = 900


@pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed: it is the extra fleet")
def test_fleets_on_a_cluster_of_three_nodes() -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, "-p", "no:randomly", str(_HERE / "on_a_cluster")],
        cwd=_ROOT,
        env={**environ, "WASMSAND_FLEET_TESTS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_MOST_SECONDS,
    )
    last = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 0, done.stdout[-20_000:]
    assert " passed" in last
    assert "skipped" not in last
