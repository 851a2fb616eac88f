"""Runs the tests of `on_a_cluster`, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_MOST_SECONDS = 900


_NEEDS_RAY = pytest.mark.skipif(
    not find_spec("ray"), reason="Ray is not installed: it is the extra fleet"
)


@_NEEDS_RAY
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
    assert done.returncode == 0, done.stdout[-20_000:]
    # Ray may print something after pytest's closing line.
    closing = [line for line in done.stdout.splitlines() if re.search(r"\d+ passed", line)]
    assert len(closing) == 1, done.stdout[-20_000:]
    assert "skipped" not in closing[0]


@_NEEDS_RAY
def test_a_local_fleet_serves_until_it_is_told_to_end() -> None:
    command = [sys.executable, "-m", "wasmsand"]
    with subprocess.Popen(
        [*command, "fleet", "up", "--local", "--nodes", "1", "--", "--workers", "1"],
        stderr=subprocess.PIPE,
        text=True,
    ) as up:
        assert up.stderr is not None
        line = next((each for each in up.stderr if each.startswith("wasmsand: ")), "")
        address, _, hosts = line.removeprefix("wasmsand: fleet ").strip().rpartition(": ")
        assert hosts == "1 hosts", line
        ran = subprocess.run(
            [*command, "run", "--connect", address, "echo there"], stdout=subprocess.PIPE, text=True
        )
        assert (ran.returncode, ran.stdout) == (0, "there\n")
        cluster = address.removeprefix("fleet:")
        subprocess.run([*command, "fleet", "down", "--address", cluster], check=True)
        assert up.wait(_MOST_SECONDS) == 0
