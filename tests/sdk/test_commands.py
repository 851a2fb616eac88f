"""`sandbox.commands.run`: input, output, limits."""

from __future__ import annotations

import time

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import CommandError, CommandResult, Sandbox


def test_a_pipeline_of_real_programs(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo hello | tr a-z A-Z")
    assert isinstance(result, CommandResult)
    assert (result.stdout, result.stderr, result.exit_code) == ("HELLO\n", "", 0)
    assert 0 < result.execution_time_ms < 30_000
    assert not result.timed_out
    assert not result.truncated


def test_stdout_and_stderr_are_apart(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo out; echo err >&2; echo out2")
    assert result.stdout == "out\nout2\n"
    assert result.stderr == "err\n"


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        ("true", 0),
        ("false", 1),
        ("exit 42", 42),
        ("exit 256", 0),
        ("no-such-command", 127),
        ("/etc/passwd", 126),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("(exit 3) | true", 0),
        ("set -o pipefail; (exit 3) | true", 3),
    ],
)
def test_exit_codes(sandbox: Sandbox, command: str, exit_code: int) -> None:
    assert sandbox.commands.run(command).exit_code == exit_code


def test_a_syntax_error_is_a_result(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("if then")
    assert result.exit_code == 2
    assert "syntax error" in result.stderr


def test_an_empty_command_succeeds(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


def test_a_sequence_runs_a_program_without_a_shell(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["printf", "%s|", "a b", "$HOME", "*", "", "'"])
    assert result.stdout == "a b|$HOME|*||'|"


def test_a_program_that_does_not_exist_is_a_command_error(sandbox: Sandbox) -> None:
    with pytest.raises(CommandError, match=r"^ENOENT: .*no-such-program") as caught:
        sandbox.commands.run(["no-such-program"])
    assert caught.value.errno_name == "ENOENT"


def test_a_cwd_that_does_not_exist_is_a_command_error(sandbox: Sandbox) -> None:
    with pytest.raises(CommandError, match=r"^ENOENT: .*/nowhere"):
        sandbox.commands.run("pwd", cwd="/nowhere")


def test_a_cwd_that_is_a_file_is_a_command_error(sandbox: Sandbox) -> None:
    with pytest.raises(CommandError, match=r"^ENOTDIR: "):
        sandbox.commands.run("pwd", cwd="/etc/passwd")


def test_cwd_of_one_call(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("pwd", cwd="/tmp").stdout == "/tmp\n"
    assert sandbox.commands.run("pwd").stdout == "/home/user\n"


def test_stdin_bytes_and_text(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("cat", stdin=b"\x00\xff").stdout_bytes == b"\x00\xff"
    assert sandbox.commands.run("cat", stdin="grün").stdout == "grün"


def test_stdin_is_empty_when_not_given(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("wc -c").stdout == "0\n"


def test_stdin_larger_than_a_pipe(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 8192
    assert sandbox.commands.run("cat", stdin=data).stdout_bytes == data


def test_a_command_that_does_not_read_its_stdin_ends(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("true", stdin=b"x" * 1_000_000).exit_code == 0


def test_output_that_is_not_utf8_is_kept_as_bytes(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(r"printf 'a\xffb'; printf '\xc3' >&2")
    assert result.stdout == "a\ufffdb"
    assert result.stdout_bytes == b"a\xffb"
    assert result.stderr_bytes == b"\xc3"


def test_files_stay_and_shell_variables_do_not(sandbox: Sandbox) -> None:
    sandbox.commands.run("X=1; export Y=2; cd /tmp; echo kept > ~/file")
    assert sandbox.commands.run('echo "[$X$Y]"; pwd; cat file').stdout == "[]\n/home/user\nkept\n"


def test_a_background_process_goes_on_after_its_command(sandbox: Sandbox) -> None:
    started = time.monotonic()
    result = sandbox.commands.run("(sleep 3; echo dropped; echo late > /tmp/late) & echo now")
    assert result.stdout == "now\n"
    assert time.monotonic() - started < 3
    while not sandbox.files.exists("/tmp/late") and time.monotonic() - started < 30:
        time.sleep(0.1)
    assert sandbox.commands.run("cat /tmp/late").stdout == "late\n"


def test_a_timeout_ends_background_processes_too(sandbox: Sandbox) -> None:
    sandbox.commands.run("(sleep 0.5; echo late > /tmp/late) & sleep 20", timeout_ms=200)
    assert sandbox.commands.list() == []


def test_the_timeout_of_the_sandbox(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=1000) as sandbox:
        started = time.monotonic()
        result = sandbox.commands.run("echo before; echo problem >&2; sleep 20; echo after")
        assert time.monotonic() - started < 15
        assert result.exit_code == 124
        assert result.timed_out
        assert result.stdout == "before\n"
        assert result.stderr == "problem\ncommand timed out\n"
        assert result.execution_time_ms >= 1000
        assert sandbox.commands.run("echo works on").stdout == "works on\n"


@pytest.mark.parametrize(
    "command",
    [
        "while :; do :; done",
        "sleep 20",
        "cat",
        "(trap '' TERM INT; while :; do :; done)",
        "sleep 20 | cat | cat",
        "read -t 20 x < <(sleep 20)",
    ],
)
def test_the_timeout_of_one_call_ends_whatever_runs(sandbox: Sandbox, command: str) -> None:
    sandbox.files.write("/tmp/fifo-maker", "mkfifo /tmp/fifo")
    if command == "cat":
        sandbox.commands.run("bash /tmp/fifo-maker")
        command = "cat /tmp/fifo"
    started = time.monotonic()
    result = sandbox.commands.run(command, timeout_ms=200)
    assert time.monotonic() - started < 5
    assert (result.exit_code, result.timed_out) == (124, True)
    assert result.stderr == "command timed out\n"
    assert sandbox.commands.run("echo works on").stdout == "works on\n"


def test_a_line_that_a_timeout_cut_is_ended_before_the_message(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("printf half >&2; sleep 20", timeout_ms=300)
    assert result.stderr == "half\ncommand timed out\n"


def test_a_sandbox_without_a_timeout(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=None) as sandbox:
        assert sandbox.commands.run("sleep 0.1; echo done").stdout == "done\n"


def test_output_arrives_while_the_command_runs(sandbox: Sandbox) -> None:
    seen: list[tuple[str, float]] = []
    errors: list[str] = []
    result = sandbox.commands.run(
        "echo first; sleep 0.5; echo second; echo bad >&2",
        on_stdout=lambda text: seen.append((text, time.monotonic())),
        on_stderr=errors.append,
    )
    assert "".join(text for text, _ in seen) == result.stdout == "first\nsecond\n"
    assert errors == ["bad\n"]
    assert seen[-1][1] - seen[0][1] > 0.3


def test_a_character_cut_in_two_writes_arrives_whole(sandbox: Sandbox) -> None:
    seen: list[str] = []
    sandbox.commands.run(r"printf '\xc3'; sleep 0.1; printf '\xbc'", on_stdout=seen.append)
    assert seen == ["ü"]


def test_a_callback_may_use_the_sandbox(sandbox: Sandbox) -> None:
    def copy(text: str) -> None:
        sandbox.files.write("copy", sandbox.files.read("file") + text.encode())

    sandbox.commands.run("echo one > file; echo go; sleep 0.5", on_stdout=copy)
    assert sandbox.files.read("copy") == b"one\ngo\n"


def test_an_exception_of_a_callback_reaches_the_caller(sandbox: Sandbox) -> None:
    def fail(_text: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sandbox.commands.run("echo hi; sleep 5", on_stdout=fail)
    assert sandbox.commands.run("echo works on").stdout == "works on\n"


def test_a_long_script_runs(sandbox: Sandbox) -> None:
    lines = "\n".join(f"x{number}=value" for number in range(5000))
    assert sandbox.commands.run(f"{lines}\necho $x4999").stdout == "value\n"


def test_the_guest_is_not_root_and_has_a_home(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("id -un; echo ~; cd; pwd")
    assert result.stdout == "user\n/home/user\n/home/user\n"
