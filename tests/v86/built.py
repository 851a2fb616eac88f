"""Whether the v86 machine is built.

Rules: tests of v86 mode are skipped where it is not; `make test` builds it.
"""

from __future__ import annotations

import pytest

from wasmsand.sdk.errors import ImageMissingError
from wasmsand.v86.image import find_image


def _problem() -> str:
    try:
        find_image()
    except ImageMissingError as error:
        return str(error)
    return ""


needs_v86 = pytest.mark.skipif(bool(_problem()), reason=_problem() or "built")
