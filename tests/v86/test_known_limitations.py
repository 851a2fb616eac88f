"""What v86 mode cannot do; docs/limitations.md has the same IDs."""

from __future__ import annotations

import pytest

from tests.v86.built import needs_v86
from wasmsand import CommandError, Sandbox, UnsupportedError

pytestmark = needs_v86


@pytest.mark.xfail(
    reason="L205: no sessions of Python in v86 mode", raises=UnsupportedError, strict=True
)
def test_a_python_session_runs(machine: Sandbox) -> None:
    assert machine.python().run("1 + 1").value == 2


@pytest.mark.xfail(
    reason="L206: an argument has at most 131,071 bytes", raises=CommandError, strict=True
)
def test_a_long_command_runs(machine: Sandbox) -> None:
    assert machine.commands.run(f"echo {'x' * 200_000} | wc -c").stdout == "200001\n"


@pytest.mark.xfail(
    reason="L207: a lost machine loses what was changed", raises=AssertionError, strict=True
)
def test_files_survive_a_panic(machine: Sandbox) -> None:
    machine.files.write("/home/user/kept", "x")
    with pytest.raises(CommandError):
        machine.commands.run("echo c > /proc/sysrq-trigger", user="root")
    assert machine.files.exists("/home/user/kept")
