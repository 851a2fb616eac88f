"""The interpreter with the extension modules of packages."""

from __future__ import annotations

from collections.abc import Callable


def test_modules_of_packages_are_built_in_under_their_dotted_names(
    full_python: Callable[[str], str],
) -> None:
    printed = full_python(
        "import sys; print([name for name in sys.builtin_module_names if 'linalg' in name])"
    )
    assert "numpy.linalg._umath_linalg" in printed
