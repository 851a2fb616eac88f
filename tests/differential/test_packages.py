"""Programs like those in the packages' user guides do the same here as with the native wheels.

See package_programs.py for how a program is written and compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.supplies import Supplies
from conformance.wheels import NativePackages, native_packages, wheels_exist_here
from tests.differential.package_programs import (
    PackageProgram,
    differences,
    load_programs,
    run_natively,
    run_sandboxed,
    text_differences,
)
from wasmsand import PackageNotBuiltError

PROGRAMS = load_programs()


@pytest.fixture(scope="session")
def native() -> NativePackages:
    if not wheels_exist_here():
        pytest.skip("the wheels to compare with are for x86-64 Linux")
    return native_packages(Supplies(print))


@pytest.mark.userland
@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_program_does_as_with_native_wheels(
    program: PackageProgram,
    native: NativePackages,
    directory: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if program.xfail:
        request.applymarker(pytest.mark.xfail(strict=True, reason=program.xfail))
    try:
        here = run_sandboxed(program)
    except PackageNotBuiltError as error:
        pytest.skip(str(error))
    there = run_natively(program, native, directory)
    assert there.exit_code == 0, f"the program fails natively: {there.stderr}"
    found = differences(program, there, here, native, tmp_path)
    assert not found, "\n".join(found)


def test_numbers_with_a_fraction_may_differ_within_the_tolerance() -> None:
    assert not text_differences("x", "a 1.0000000001 b", "a 1.0 b", 1e-9)
    assert text_differences("x", "a 1.00001 b", "a 1.0 b", 1e-9)


def test_whole_numbers_and_words_may_not_differ() -> None:
    assert text_differences("x", "n 1000000001", "n 1000000000", 1e-3)
    assert text_differences("x", "mean 1.5", "median 1.5", 1e-3)
    assert text_differences("x", "1.5", "1.5\n1.5", 1e-3)
