"""A WASI program is an ordinary process in pipelines, jobs, substitutions and under signals."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from wasmsand import CommandError, Sandbox

Install = Callable[..., None]


def test_both_kinds_of_programs_share_a_pipeline(sandbox: Sandbox, install: Install) -> None:
    install("copy")
    result = sandbox.commands.run("seq 200000 | copy 1000 | tail -n 1 | copy | tr 0-9 a-j | copy 1")
    assert (result.stdout, result.exit_code) == ("caaaaa\n", 0)


def test_a_reader_that_leaves_ends_the_writer_by_sigpipe(
    sandbox: Sandbox, install: Install
) -> None:
    install("copy")
    result = sandbox.commands.run("copy < /dev/zero | head -c 3 | wc -c; echo ${PIPESTATUS[@]}")
    assert result.stdout == "3\n141 0 0\n"


def test_substitutions_and_redirections_reach_a_wasi_program(
    sandbox: Sandbox, install: Install
) -> None:
    install("copy", "libc")
    result = sandbox.commands.run(
        'echo "$(echo in | copy)"; copy < <(echo from); libc <(echo by name) | head -n 1;'
        " echo there | copy > out; cat out; copy <<< here"
    )
    lines = result.stdout.splitlines()
    assert lines[:2] == ["in", "from"]
    assert lines[2].startswith("/dev/fd/")
    assert lines[2].endswith(": by name")
    assert lines[3:] == ["there", "here"]


def test_descriptors_of_the_shell_neither_leak_nor_collide(
    sandbox: Sandbox, install: Install
) -> None:
    install("preopens", "libc")
    sandbox.files.write("secret", "secret\n")
    plain = sandbox.commands.run("preopens").stdout
    crowded = sandbox.commands.run("exec 3< secret 4< secret 9< secret; preopens")
    assert (crowded.stdout, crowded.stderr) == (plain, "")
    named = sandbox.commands.run("exec 3< secret; libc /dev/fd/3 | head -n 1")
    assert named.stdout == "/dev/fd/3: secret\n"


def test_other_processes_see_and_signal_a_wasi_program(sandbox: Sandbox, install: Install) -> None:
    install("copy")
    result = sandbox.commands.run(
        "sleep 10 | copy & sleep 0.2; tr '\\0' ' ' < /proc/$!/cmdline; echo; "
        "readlink /proc/$!/exe; ls -v /proc/$!/fd | head -n 4 | paste -sd' '; kill -STOP $!; "
        "grep -o stopped /proc/$!/status; kill -CONT $!; kill $!; wait $!; echo $?"
    )
    assert result.stdout.splitlines() == [
        "copy ", "/usr/local/bin/copy", "0 1 2 3", "stopped", "143",
    ]  # fmt: skip


def test_the_timeout_ends_a_computing_or_waiting_wasi_program(
    sandbox: Sandbox, install: Install
) -> None:
    install("copy", "crash")
    started = time.monotonic()
    assert sandbox.commands.run("sleep 20 | copy", timeout_ms=300).exit_code == 124
    assert sandbox.commands.run("copy < /dev/zero > /dev/null", timeout_ms=300).exit_code == 124
    assert time.monotonic() - started < 15
    assert sandbox.commands.run("echo fine | copy").stdout == "fine\n"


def test_xargs_env_and_timeout_start_a_wasi_program(sandbox: Sandbox, install: Install) -> None:
    install("exit_code", "arguments")
    result = sandbox.commands.run(
        "printf '%s\\n' a b | xargs -n 1 arguments | grep -c ^arguments; timeout 5 exit_code 9; "
        "echo $?; env exit_code 8; echo $?; find /usr/local/bin -name exit_code -exec {} 7 \\;"
    )
    assert result.stdout == "2\n9\n8\n"


def test_a_limit_of_open_files_leaves_fewer_preopens(sandbox: Sandbox, install: Install) -> None:
    install("preopens", "copy")
    result = sandbox.commands.run("ulimit -n 8; echo in | copy")
    assert result.stdout == "in\n"


def test_memory_is_limited(install: Install, sandbox: Sandbox) -> None:
    install("copy")
    result = sandbox.commands.run("ulimit -v 10240; echo x | copy 100000000; echo $?")
    assert result.stdout != "x\n0\n"


def test_the_program_can_be_given_without_a_shell(sandbox: Sandbox, install: Install) -> None:
    install("arguments")
    result = sandbox.commands.run(["arguments", "$HOME", "*"], env={"A": "1"})
    assert result.stdout.startswith("arguments\n$HOME\n*\n")


@pytest.mark.parametrize(
    ("wasm", "reason"),
    [
        (b"\0asm\1\0\0\0", "exports no memory"),
        (b"\0asm\1\0\0\0\xff", "not a module this engine can run"),
        (b"\0asm\x0d\0\1\0", "not a module this engine can run"),
    ],
    ids=["empty", "damaged", "component"],
)
def test_a_file_that_is_not_a_program_is_refused_with_the_reason(
    sandbox: Sandbox, wasm: bytes, reason: str
) -> None:
    sandbox.files.write("bad", wasm)
    result = sandbox.commands.run("chmod +x bad; ./bad; echo $?")
    assert result.stdout == "126\n"
    assert result.stderr.startswith(f"wasmsand: /home/user/work/bad: {reason}")
    with pytest.raises(CommandError, match=f"/home/user/work/bad: {reason}"):
        sandbox.commands.run(["./bad"])
