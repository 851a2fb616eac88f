"""Tests made from tables of scripts, for the tests beside recipes.

Owns the two common kinds: what scripts print, and which errors they report. Rule: a table that
needs more than a setup script is an ordinary parametrised test.

Example:
    test_matches = prints(
        ("echo a | grep a", "a\\n"),
        ("echo a | grep -c b", "0\\n"),
    )
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import Sandbox


def prints(*cases: tuple[str, str], setup: str = "") -> Callable[[Sandbox, str, str], None]:
    """A test per script: it prints exactly this text, and nothing on standard error.

    `setup` runs before the script, as a separate command.
    """

    @pytest.mark.parametrize(("script", "stdout"), cases)
    def test(sandbox: Sandbox, script: str, stdout: str) -> None:
        _prepare(sandbox, setup)
        result = sandbox.commands.run(script)
        assert (result.stdout, result.stderr) == (stdout, "")

    return test


def fails(
    *cases: tuple[str, int, str], setup: str = "", whole: bool = True
) -> Callable[[Sandbox, str, int, str], None]:
    """A test per script: it ends with this exit code and writes exactly this error message.

    With `whole=False` the message only has to be part of standard error.
    """

    @pytest.mark.parametrize(("script", "exit_code", "stderr"), cases)
    def test(sandbox: Sandbox, script: str, exit_code: int, stderr: str) -> None:
        _prepare(sandbox, setup)
        result = sandbox.commands.run(script)
        assert result.exit_code == exit_code
        if whole:
            assert result.stderr == stderr
        else:
            assert stderr in result.stderr

    return test


def _prepare(sandbox: Sandbox, setup: str) -> None:
    if setup:
        assert sandbox.commands.run(setup).exit_code == 0
