"""`sandbox.shell()`: one bash that keeps its state."""

from __future__ import annotations

import threading
import time

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import CommandError, Sandbox, SandboxClosedError


def test_state_stays_from_command_to_command(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        shell.run("cd /tmp; name=world; export LOUD=yes; greet() { echo hello $1; }; set -o noglob")
        assert shell.run("greet $name; pwd; printenv LOUD; echo *").stdout == (
            "hello world\n/tmp\nyes\n*\n"
        )
        assert shell.run('echo "$_ $OLDPWD" | cat').stdout.endswith("/home/user\n")


def test_results_are_like_those_of_commands(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        result = shell.run("echo out; echo err >&2; (exit 3)")
        assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
        assert 0 < result.execution_time_ms < 30_000
        assert shell.run("echo $?").stdout != ""
        result = shell.run(r"printf 'a\xff\0b'")
        assert (result.stdout_bytes, result.exit_code) == (b"a\xff\0b", 0)
        assert shell.run("").exit_code == 0
        assert (
            shell.run("kill -9 $BASHPID | true; exit_code=5; (kill -9 $BASHPID)").exit_code == 137
        )


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("echo 'single' \"double\" it\\'s", "single double it's\n"),
        ("cat <<END\nhere $((1 + 1))\nEND", "here 2\n"),
        ("echo one\necho two # comment", "one\ntwo\n"),
        ("echo '!!' \"a!b\" !x", "!! a!b !x\n"),
        ("for i in 1 2; do\n  echo $i\ndone", "1\n2\n"),
        ("echo grün | tr a-z A-Z", "GRüN\n"),
    ],
)
def test_scripts_of_every_form(sandbox: Sandbox, script: str, stdout: str) -> None:
    with sandbox.shell() as shell:
        result = shell.run(script)
        assert (result.stdout, result.stderr) == (stdout, "")


def test_a_syntax_error_leaves_the_shell_usable(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        result = shell.run("if then")
        assert result.exit_code == 2
        assert "syntax error" in result.stderr
        assert shell.run("echo 'never closed").exit_code != 0
        assert shell.run("echo fine").stdout == "fine\n"


def test_stdin_is_empty_or_what_was_given(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        assert shell.run("cat; read x; echo $?").stdout == "1\n"
        assert shell.run("cat", stdin=b"\x00data").stdout_bytes == b"\x00data"
        assert shell.run("ls -A /tmp").stdout == ""


def test_a_timeout_leaves_the_shell_and_its_state(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        shell.run("x=kept; f() { while :; do :; done; }; cd /tmp")
        for script in (
            "sleep 60; echo after",
            "while :; do :; done",
            "f; echo after",
            "cat | sleep 60",
        ):
            started = time.monotonic()
            result = shell.run(f"echo before; {script}", timeout_ms=700)
            assert time.monotonic() - started < 15
            assert (result.exit_code, result.timed_out) == (124, True)
            assert (result.stdout, result.stderr) == ("before\n", "command timed out\n")
            assert shell.run("echo $x; pwd").stdout == "kept\n/tmp\n"


def test_a_timeout_leaves_background_jobs_of_earlier_commands(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        result = shell.run("sleep 60 & echo $!")
        assert result.stderr == ""
        assert shell.run("sleep 50", timeout_ms=200).timed_out
        assert shell.run("pgrep -x sleep").stdout == result.stdout
        assert shell.run("kill %1; wait %1").exit_code == 143


def test_a_script_that_resists_the_timeout_takes_the_shell_with_it(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    result = shell.run("trap '' INT; while :; do :; done", timeout_ms=200)
    assert result.timed_out
    assert shell.closed
    with pytest.raises(CommandError, match=r"^ESRCH: the shell has ended"):
        shell.run("true")


def test_the_sandboxs_timeout_holds(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=300).shell() as shell:
        assert shell.run("sleep 60").timed_out


def test_exit_is_a_result_and_ends_the_shell(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    assert not shell.closed
    result = shell.run("echo bye; exit 3")
    assert (result.stdout, result.exit_code) == ("bye\n", 3)
    assert shell.closed
    with pytest.raises(CommandError) as caught:
        shell.run("true")
    assert caught.value.errno_name == "ESRCH"


def test_output_arrives_while_the_command_runs(sandbox: Sandbox) -> None:
    seen: list[tuple[str, float]] = []
    errors: list[str] = []
    with sandbox.shell() as shell:
        shell.run(
            "echo first; sleep 0.5; echo second; echo bad >&2",
            on_stdout=lambda text: seen.append((text, time.monotonic())),
            on_stderr=errors.append,
        )
    assert "".join(text for text, _ in seen) == "first\nsecond\n"
    assert errors == ["bad\n"]
    assert seen[-1][1] - seen[0][1] > 0.3


def test_an_exception_of_a_callback_interrupts_the_command(sandbox: Sandbox) -> None:
    def fail(_text: str) -> None:
        raise ZeroDivisionError

    with sandbox.shell() as shell:
        with pytest.raises(ZeroDivisionError):
            shell.run("x=1; echo hi; sleep 60", on_stdout=fail)
        assert shell.run("echo $x").stdout == "1\n"


def test_an_interrupt_ends_a_child_that_starts_at_that_moment(make_sandbox: MakeSandbox) -> None:
    def fail(_text: str) -> None:
        raise ZeroDivisionError

    with make_sandbox().shell() as shell:
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                shell.run("x=1; echo hi; sleep 60", on_stdout=fail)
            assert shell.run("echo $x", timeout_ms=20_000).exit_code == 0


def test_too_much_output_ends_the_command_and_not_the_shell(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(max_output_bytes=1000).shell() as shell:
        shell.run("x=1")
        result = shell.run("yes")
        assert (len(result.stdout_bytes), result.truncated, result.exit_code) == (1000, True, 137)
        assert "raise max_output_bytes" in result.stderr
        assert shell.run("echo $x").stdout == "1\n"


def test_variables_and_directory_of_the_start(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(env={"A": "sandbox", "B": "sandbox"})
    with sandbox.shell(env={"B": "shell"}, cwd="/tmp") as shell:
        assert shell.run("echo $A $B; pwd").stdout == "sandbox shell\n/tmp\n"
        assert shell.run("env | grep -E '^(PS1|PS2|HISTFILE)='").exit_code == 1


def test_redirections_by_exec_end_with_the_command(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        assert shell.run("exec > log; echo logged").stdout == ""
        assert shell.run("echo shown; cat log").stdout == "shown\nlogged\n"


def test_a_script_begins_with_the_status_of_the_one_before(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        shell.run("(exit 3) | true | (exit 4)")
        assert shell.run("echo $? ${PIPESTATUS[@]}").stdout == "4 3 0 4\n"


def test_the_shell_ends_as_a_script_ends(sandbox: Sandbox) -> None:
    for script, code, stdout in (
        ("trap 'echo bye $?' EXIT; exit 4", 4, "bye 4\n"),
        ("set -e; echo one; (exit 5); echo two", 5, "one\n"),
        ("exec sh -c 'echo other; exit 6'", 6, "other\n"),
    ):
        shell = sandbox.shell()
        result = shell.run(script)
        assert (result.exit_code, result.stdout, result.stderr) == (code, stdout, "")
        assert (shell.closed, shell.exit_code) == (True, code)


def test_scripts_without_an_interpreter_line_run_in_a_shell_of_their_own(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        shell.run("printf 'read x; echo $0 $x $y\\n' > script; chmod +x script; y=2")
        assert shell.run("./script <<< 1; echo $?").stdout == "./script 1\n0\n"


@pytest.mark.not_by("http", "process", reason="as on this machine")
def test_a_bash_without_session_mode_will_do(sandbox: Sandbox) -> None:
    """As that of an emulated machine, or of an older image."""
    wrapper = """#!/usr/bin/real-bash
    for word; do [ "$word" = --session ] && exit 2; done
    exec -a bash /usr/bin/real-bash "$@"
    """
    sandbox.files.write("/tmp/wrapper", wrapper, mode=0o755)
    sandbox.commands.run(
        "cd /usr/bin && mv bash real-bash && cp /tmp/wrapper bash && rm /tmp/wrapper", user="root"
    )
    with sandbox.shell() as shell:
        shell.run("x=kept; cd /tmp")
        long = "\n".join(f"x{number}=value" for number in range(3000))
        assert shell.run(f"{long}\necho $x $PWD $x2999").stdout == "kept /tmp value\n"
        assert shell.run("sleep 60", timeout_ms=500).timed_out
        assert shell.run("cat; ls -A /tmp", stdin="input\n").stdout.startswith("input\n.wasmsand-")
        twin = sandbox.fork().sessions[0]
        assert twin.run("echo $x").stdout == "kept\n"


def test_two_shells_and_commands_side_by_side(sandbox: Sandbox) -> None:
    with sandbox.shell() as one, sandbox.shell() as two:
        one.run("x=one")
        two.run("x=two")
        assert (one.run("echo $x").stdout, two.run("echo $x").stdout) == ("one\n", "two\n")
        assert one.pid != two.pid
        assert sandbox.commands.run("echo [$x]").stdout == "[]\n"


def test_threads_take_turns(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        shell.run("n=0")
        threads = [
            threading.Thread(target=lambda: shell.run("m=$n; sleep 0.01; n=$((m + 1))"))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert shell.run("echo $n").stdout == "8\n"


def test_a_long_script(sandbox: Sandbox) -> None:
    lines = "\n".join(f"x{number}=value" for number in range(3000))
    with sandbox.shell() as shell:
        assert shell.run(f"{lines}\necho $x2999").stdout == "value\n"


def test_closing_ends_what_the_shell_started(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    shell.run("sleep 60 &")
    shell.close()
    shell.close()
    assert sandbox.commands.list() == []


def test_killing_the_sandbox_releases_waiting_calls(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    threading.Timer(0.3, sandbox.kill).start()
    with pytest.raises(SandboxClosedError):
        shell.run("sleep 60")
    assert shell.closed


def test_writing_to_the_shells_own_descriptors_does_no_harm(
    sandbox: Sandbox,
) -> None:
    with sandbox.shell() as shell:
        script = "head -c 3M /dev/zero >&103; echo 0123456789abcdef 7 >&103; echo fine; (exit 3)"
        result = shell.run(script)
        assert (result.stdout, result.exit_code) == ("fine\n", 3)
        assert shell.run("echo still fine").stdout == "still fine\n"


def test_a_result_tells_what_the_sandbox_refused(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(network=["allowed.test"])
    with sandbox.shell() as shell:
        for _ in range(2):
            result = shell.run("exec 3<>/dev/tcp/other.test/80")
            assert "to allow it, add 'other.test' to network.allow" in result.stderr
        assert shell.run("echo hi").stderr == ""
    with sandbox.python() as session:
        code = "import socket\ntry: socket.getaddrinfo('other.test', 80)\nexcept OSError: pass"
        assert "add 'other.test' to network.allow" in session.run(code).stderr
