"""Tests made from tables of scripts, for the tests beside recipes.

Owns the common kinds: what scripts print, how they end, and which errors they report. Rule: a
table that needs more than a setup is an ordinary parametrised test. A setup is a script, which
runs as a separate command, or a function, which gets the sandbox.

Example:
    test_matches = prints(
        ("echo a | grep a", "a\\n"),
        ("echo a | grep -c b", "0\\n"),
    )
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import CommandResult, Sandbox

Setup = str | Callable[[Sandbox], object]


def prints(*cases: tuple[str, str], setup: Setup = "") -> Callable[..., None]:
    """A test per script: it prints exactly this text, and nothing on standard error."""

    @pytest.mark.parametrize(("script", "stdout"), cases)
    def test(sandbox: Sandbox, script: str, stdout: str) -> None:
        result = _run(sandbox, setup, script)
        assert (result.stdout, result.stderr) == (stdout, "")

    return test


def ends(*cases: tuple[str, str, int], setup: Setup = "") -> Callable[..., None]:
    """A test per script: it prints exactly this text, nothing on standard error, and ends with
    this exit code."""

    @pytest.mark.parametrize(("script", "stdout", "exit_code"), cases)
    def test(sandbox: Sandbox, script: str, stdout: str, exit_code: int) -> None:
        result = _run(sandbox, setup, script)
        assert (result.stdout, result.stderr, result.exit_code) == (stdout, "", exit_code)

    return test


def fails(*cases: tuple[str, int, str], setup: Setup = "") -> Callable[..., None]:
    """A test per script: it ends with this exit code and writes exactly this error message."""

    @pytest.mark.parametrize(("script", "exit_code", "stderr"), cases)
    def test(sandbox: Sandbox, script: str, exit_code: int, stderr: str) -> None:
        result = _run(sandbox, setup, script)
        assert (result.exit_code, result.stderr) == (exit_code, stderr)

    return test


def complains(
    *cases: tuple[str, int, str], setup: Setup = "", on_stdout: bool = False
) -> Callable[..., None]:
    """A test per script: it ends with this exit code, and its error message contains this text.

    `on_stdout`: the program writes some of its messages to standard output.
    """

    @pytest.mark.parametrize(("script", "exit_code", "message"), cases)
    def test(sandbox: Sandbox, script: str, exit_code: int, message: str) -> None:
        result = _run(sandbox, setup, script)
        assert result.exit_code == exit_code
        assert message in result.stderr + (result.stdout if on_stdout else "")

    return test


def run_file(sandbox: Sandbox, name: str, text: str, command: str) -> str:
    """Write a file and run a command that uses it. Return what the command prints; standard error
    must be empty."""
    sandbox.files.write(name, text)
    result = sandbox.commands.run(command)
    assert result.stderr == ""
    return result.stdout


def _run(sandbox: Sandbox, setup: Setup, script: str) -> CommandResult:
    if callable(setup):
        setup(sandbox)
    elif setup:
        assert sandbox.commands.run(setup).exit_code == 0
    return sandbox.commands.run(script)
