"""openblas: our kernels give the results of plain loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.compiling import compiled, sysroot_of
from wasmsand import Sandbox

CHECK = Path(__file__).parent / "check"


def test_products_and_solutions_are_those_of_plain_loops(sandbox: Sandbox, tmp_path: Path) -> None:
    musl, openblas = sysroot_of("musl"), sysroot_of("openblas")
    if musl is None or openblas is None:
        pytest.skip("the stage of packages is not built: run `make packages`")
    library = openblas / "lib/libopenblas.a"
    program = compiled([CHECK / "check_blas.c", library], musl, tmp_path, f"-I{CHECK}")
    sandbox.files.write("/tmp/check_blas", program)
    result = sandbox.commands.run("chmod +x /tmp/check_blas; /tmp/check_blas", timeout_ms=120_000)
    assert (result.stdout, result.stderr) == ("0 differences\n", "")
