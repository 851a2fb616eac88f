"""The libc as a guest sees it: each program of userland/libc/tests checks one behaviour and
exits with status 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.supplies import ROOT
from tests.programs.compiling import compiled
from wasmsand import Sandbox

SOURCES = sorted((ROOT / "userland/libc/tests").glob("*.c"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.stem))
def test_a_program_of_the_libc_tests_passes(source: Path, sysroot: Path, tmp_path: Path) -> None:
    program = f"/usr/local/bin/{source.stem}"
    with Sandbox(timeout_ms=60_000) as sandbox:
        sandbox.files.write(program, compiled([source], sysroot, tmp_path))
        result = sandbox.commands.run(f"chmod +x {program}; {program}")
        assert (result.exit_code, result.stderr) == (0, "")


def test_there_are_programs_to_run() -> None:
    assert len(SOURCES) >= 16
