"""What git's tests have in common: an identity, fixed dates, a short way to commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import CommandResult, Sandbox

_SURROUNDINGS = """
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org
export GIT_COMMITTER_NAME=Bob GIT_COMMITTER_EMAIL=bob@example.org
export GIT_AUTHOR_DATE='2024-01-02T03:04:05+0100' GIT_COMMITTER_DATE='2024-01-02T03:04:05+0100'
git config --global init.defaultBranch main
git config --global advice.detachedHead false
save() { printf '%s\\n' "${2-$1}" > "$1" && git add "$1" && git commit -q -m "${3-$1}"; }
"""


@pytest.fixture
def run(sandbox: Sandbox) -> Callable[[str], CommandResult]:
    """Runs a script, in which `save FILE [CONTENT [MESSAGE]]` commits a file."""
    return lambda script: sandbox.commands.run(_SURROUNDINGS + script)


@pytest.fixture
def printed(run: Callable[[str], CommandResult]) -> Callable[[str], str]:
    """Runs a script that must succeed and say nothing on stderr; returns what it printed."""

    def run_well(script: str) -> str:
        result = run(f"set -e\n{script}")
        assert (result.stderr, result.exit_code) == ("", 0)
        return result.stdout

    return run_well
