"""`wasmsand completion`: what a shell completes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.command import wasmsand

pytestmark = pytest.mark.no_userland

COMMANDS = {
    *("run", "shell", "python", "load", "snapshot", "restore", "fork", "cp", "ls"),
    *("rpc", "mcp", "serve", "build", "bench", "doctor"),
}


def completed(line: str) -> set[str]:
    """What a real bash offers after `line`."""
    script = wasmsand("completion", "bash").stdout.decode()
    words = line.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    probe = f"""{script}
COMP_WORDS=({array}) COMP_CWORD={len(words) - 1}
_wasmsand
printf '%s\\n' "${{COMPREPLY[@]}}\"
"""
    result = subprocess.run(
        ["bash", "-c", probe], capture_output=True, timeout=60, text=True, check=True
    )
    assert result.stderr == ""
    return set(result.stdout.split())


def test_bash_completes_commands_and_options() -> None:
    assert completed("wasmsand ") >= {*COMMANDS, "completion"}
    assert completed("wasmsand s") == {"shell", "serve", "snapshot"}
    assert completed("wasmsand run --ti") == {"--timeout"}
    assert completed("wasmsand completion ") == {"bash", "fish", "zsh"}
    assert {"--http", "--idle-timeout"} <= completed("wasmsand mcp --")
    assert completed("wasmsand run nothing") == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_every_script(shell: str) -> None:
    script = wasmsand("completion", shell).stdout.decode()
    for name in COMMANDS:
        assert name in script
    assert "timeout" in script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_can_read_it(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed on this machine")
    script = wasmsand("completion", shell).stdout
    result = subprocess.run([shell, "-n"], input=script, capture_output=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, b"")
