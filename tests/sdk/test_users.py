"""`commands.run(user=...)`: the user and the sandbox's own root, on every interface."""

from __future__ import annotations

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import Sandbox


def test_a_command_runs_as_the_user_unless_told_otherwise(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("id -un; echo $HOME $USER $LOGNAME").stdout == (
        "user\n/home/user user user\n"
    )
    assert sandbox.commands.run("id -un", user="user").stdout == "user\n"


def test_a_command_runs_as_root(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("id; echo $HOME $USER $LOGNAME; pwd", user="root")
    assert result.stdout == (
        "uid=0(root) gid=0(root) groups=0(root)\n/root root root\n/home/user\n"
    )


def test_a_started_command_runs_as_root(sandbox: Sandbox) -> None:
    with sandbox.commands.start("id -un; cat > /etc/motd", user="root") as command:
        command.write_stdin("hello\n")
        command.close_stdin()
        assert command.wait().stdout == "root\n"
    assert sandbox.files.read_text("/etc/motd") == "hello\n"


def test_sessions_run_as_root(sandbox: Sandbox) -> None:
    with sandbox.shell(user="root") as shell:
        assert shell.run("id -un; echo $HOME").stdout == "root\n/root\n"
    with sandbox.python(user="root") as session:
        assert session.run("import os; os.getuid(), os.environ['USER']").value == (0, "root")
    with sandbox.shell() as shell:
        assert shell.run("id -un").stdout == "user\n"


def test_a_terminal_runs_as_root(sandbox: Sandbox) -> None:
    with sandbox.pty(["id", "-un"], user="root") as terminal:
        assert b"".join(terminal) == b"root\r\n"


def test_a_variable_of_the_sandbox_is_kept(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(env={"HOME": "/srv"}) as sandbox:
        assert sandbox.commands.run("echo $HOME $USER", user="root").stdout == "/srv root\n"


def test_what_root_writes_belongs_to_root(sandbox: Sandbox) -> None:
    sandbox.commands.run("echo 1 > /home/user/of-root", user="root")
    result = sandbox.commands.run("echo 2 > of-root; stat -c %U of-root")
    assert result.stdout == "root\n"
    assert "Permission denied" in result.stderr


def test_another_user_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match=r'^user must be "user" or "root", not .ann.$'):
        sandbox.commands.run("id", user="ann")  # type: ignore[arg-type]


def test_the_limits_apply_to_root(make_sandbox: MakeSandbox) -> None:
    limits = {"max_processes": 8, "max_open_files": 32, "fs_limit_bytes": 4 << 20}
    with make_sandbox(**limits) as sandbox:

        def run(script: str) -> str:
            result = sandbox.commands.run(script, user="root")
            return result.stdout + result.stderr

        assert "No space left on device" in run("head -c 8M /dev/zero > /root/big")
        assert "cannot modify limit" in run("ulimit -n 4096")
        assert "cannot modify limit" in run("ulimit -u 4096")
        assert "Resource temporarily unavailable" in run("for i in {1..20}; do sleep 9 & done")
        assert sandbox.usage().processes <= 8


def test_root_has_no_power_over_the_machine(sandbox: Sandbox) -> None:
    attempts = (
        "chroot / true",
        "date -s 2001-01-01",
        "mknod /tmp/memory c 1 1 && cat /tmp/memory",
        "mknod /tmp/disk b 8 0 && cat /tmp/disk",
        "kill -9 1; kill -0 1 && exit 1",  # as on Linux, the first process ignores it
    )
    for attempt in attempts:
        result = sandbox.commands.run(attempt, user="root")
        assert result.exit_code != 0, (attempt, result.stdout)
    assert sandbox.commands.run("echo alive").stdout == "alive\n"


def test_the_timeout_ends_commands_of_root(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("trap '' TERM INT; sleep 60", user="root", timeout_ms=300)
    assert result.timed_out
    assert [p for p in sandbox.commands.list() if p.argv[0] == "sleep"] == []
