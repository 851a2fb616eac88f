"""The probes of `bench.peers` ask what bash and the GNU tools answer."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from bench.peers.others import SHELL, Native, Wasmsand
from bench.peers.probes import PROBES, Probe
from wasmsand.machine.image import image_directories

_UNLIKE_LINUX = {"os.fork": "L032"}
"""Probes that this package does not pass, and the limitation that says why."""
_OPTIONAL = ("jq", "sqlite3", "git", "bc", "vim", "make", "patch")
_PACKAGES = {"numpy", "pandas"}


def _identity(probe: Probe) -> str:
    return re.sub(r"\W+", "-", probe.name)


@pytest.mark.parametrize("probe", PROBES, ids=_identity)
def test_the_programs_of_this_machine_agree(probe: Probe, tmp_path: Path) -> None:
    for program in _OPTIONAL:
        if re.search(rf"\b{program}\b", probe.script) and shutil.which(program) is None:
            pytest.skip(f"this machine has no {program}")
    if probe.name in _PACKAGES:
        pytest.skip("this machine's Python need not have it")
    if sys.platform != "linux":
        pytest.skip("the GNU tools are Linux's")
    assert Native(tmp_path).run(SHELL, probe.script).stdout == probe.expected


@pytest.mark.userland
@pytest.mark.parametrize("probe", PROBES, ids=_identity)
def test_the_sandbox_agrees(probe: Probe, request: pytest.FixtureRequest) -> None:
    if probe.name in _PACKAGES and len(image_directories()) < 2:
        pytest.skip("the second stage is not built: make packages")
    if probe.name in _UNLIKE_LINUX:
        reason = _UNLIKE_LINUX[probe.name]
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    assert Wasmsand().run(SHELL, probe.script).stdout == probe.expected
