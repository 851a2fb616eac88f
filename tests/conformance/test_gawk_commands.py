"""The commands of a Makefile's target, as a script."""

from __future__ import annotations

import subprocess

import pytest

from conformance.gawk_suite import separate_shells

pytestmark = pytest.mark.no_userland


def printed(commands: str) -> str:
    script = separate_shells(commands)
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout


def test_each_command_has_a_shell_of_its_own() -> None:
    assert printed("echo one; exit 3\ncd /; x=1\necho ${x-unset}\n") == "one\nunset\n"


def test_a_command_may_go_on_over_lines() -> None:
    assert printed("for i in 1 2; do \\\necho $i; \\\ndone\necho end\n") == "1\n2\nend\n"


def test_each_shell_knows_its_own_process_number() -> None:
    first, second = printed("echo $$\necho $$\n").split()
    assert first != second
