"""The interpreter with the extension modules of packages."""

from __future__ import annotations

from collections.abc import Callable

from wasmsand import Sandbox


def test_modules_of_packages_are_built_in_under_their_dotted_names(
    full_python: Callable[[str], str],
) -> None:
    printed = full_python(
        "import sys; print([name for name in sys.builtin_module_names if 'linalg' in name])"
    )
    assert "numpy.linalg._umath_linalg" in printed


def test_packages_cannot_be_imported_unless_they_are_on_the_path(
    sandbox: Sandbox, full_python: Callable[[str], str]
) -> None:
    result = sandbox.commands.run("/usr/libexec/python3-full -c 'import numpy'")
    assert result.exit_code == 1
    assert "No module named 'numpy'" in result.stderr
