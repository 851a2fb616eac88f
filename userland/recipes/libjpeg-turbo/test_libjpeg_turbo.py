"""libjpeg-turbo: our vector code gives the results of the library without it.

`check_jpeg.c` printed the digests below with a library that was built with -DWITH_SIMD=OFF.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.compiling import compiled, sysroot_of
from wasmsand import Sandbox

CHECK = Path(__file__).parent / "check/check_jpeg.c"

EXPECTED = """\
small pictures 144f8e065783a7fd
larger pictures 24ad9f8c0d73dc00
coefficients aebcdc48b32b153f
coefficients that are too large 1ad9143c8b81bef7
"""


def test_pictures_and_files_are_those_of_the_code_without_vectors(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    musl, jpeg = sysroot_of("musl"), sysroot_of("libjpeg-turbo")
    if musl is None or jpeg is None:
        pytest.skip("the stage of packages is not built: run `make packages`")
    library = jpeg / "lib/libjpeg.a"
    program = compiled([CHECK, library], musl, tmp_path, f"-I{jpeg / 'include'}")
    sandbox.files.write("/tmp/check_jpeg", program)
    result = sandbox.commands.run("chmod +x /tmp/check_jpeg; /tmp/check_jpeg")
    assert (result.stdout, result.stderr) == (EXPECTED, "")
