"""Hostile commands: each ends at its limit with a clear error, and the sandbox stays usable."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from wasmsand import CommandResult, Sandbox

MIB = 1024 * 1024


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with the default limits that must still work after the test."""
    with Sandbox() as sandbox:
        yield sandbox
        assert sandbox.commands.run("echo alive | cat").stdout == "alive\n"


def run_within(sandbox: Sandbox, seconds: float, command: str, timeout_ms: int) -> CommandResult:
    """The result of a command that must return soon after its timeout at the latest."""
    started = time.monotonic()
    result = sandbox.commands.run(command, timeout_ms=timeout_ms)
    assert time.monotonic() - started < seconds
    return result


@pytest.mark.parametrize("bomb", [":(){ :|:& };:", ":(){ :|:& };: ; wait", ":(){ : | : ; };:"])
def test_a_fork_bomb_is_stopped_by_max_processes(sandbox: Sandbox, bomb: str) -> None:
    result = run_within(sandbox, 20, bomb, timeout_ms=4_000)
    # A bomb in the background outlives its shell: the next commands make room for themselves.
    later = [run_within(sandbox, 20, "sleep 0.5; echo alive", timeout_ms=4_000) for _ in range(2)]
    told = result.stderr + "".join(after.stderr for after in later)
    assert re.search("Resource temporarily unavailable|max_processes", told)
    assert later[-1].stdout == "alive\n"


def test_a_tree_of_sleeping_children_is_stopped_by_max_processes() -> None:
    with Sandbox(max_processes=10) as sandbox:
        result = run_within(
            sandbox, 15, "for i in {1..20}; do sleep 60 & done; wait", timeout_ms=3_000
        )
        assert "Resource temporarily unavailable" in result.stderr
        assert sandbox.commands.run("echo alive | cat").stdout == "alive\n"


def test_yes_to_a_file_ends_with_no_space(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("yes > file")
    assert result.exit_code == 1
    assert result.stderr == "yes: standard output: No space left on device\n"
    size = sandbox.files.stat("file").size
    assert 0 < size <= 256 * MIB
    sandbox.commands.run("rm file")
    assert sandbox.commands.run("echo room again > file && cat file").stdout == "room again\n"


def test_reading_dev_zero_for_ever_ends_by_the_timeout(sandbox: Sandbox) -> None:
    result = run_within(sandbox, 6, "cat /dev/zero > /dev/null", timeout_ms=1_000)
    assert (result.exit_code, result.stderr) == (124, "command timed out\n")


def test_an_endless_loop_ends_by_the_timeout(sandbox: Sandbox) -> None:
    result = run_within(sandbox, 6, "while :; do :; done", timeout_ms=1_000)
    assert (result.exit_code, result.stderr) == (124, "command timed out\n")


def test_sixty_endless_loops_end_by_the_timeout(sandbox: Sandbox) -> None:
    command = "for i in {1..60}; do while :; do :; done & done; wait"
    result = run_within(sandbox, 15, command, timeout_ms=2_000)
    assert result.exit_code == 124


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("10G", "dd: invalid number: '10G': Value too large for defined data type\n"),
        ("1900M", "dd: memory exhausted by input buffer of size 1992294400 bytes (1.9 GiB)\n"),
    ],
)
def test_a_huge_allocation_is_refused(sandbox: Sandbox, size: str, message: str) -> None:
    result = sandbox.commands.run(f"dd if=/dev/zero of=/dev/null bs={size} count=1")
    assert (result.exit_code, result.stderr) == (1, message)


@pytest.mark.parametrize("command", ["x=x; while :; do x=$x$x; done", "x=$(yes | head -c 10G)"])
def test_memory_that_grows_for_ever_is_refused(command: str) -> None:
    with Sandbox(memory_limit_bytes=64 * MIB) as sandbox:
        result = sandbox.commands.run(command)
        assert result.exit_code != 0
        assert not result.timed_out
        assert re.search("cannot allocate|memory_limit_bytes", result.stderr)
        assert sandbox.commands.run("echo alive | cat").stdout == "alive\n"


def test_memory_of_all_processes_together_is_limited() -> None:
    with Sandbox(memory_limit_bytes=96 * MIB) as sandbox:
        grow = "x=xxxxxxxx; for i in {1..21}; do x=$x$x; done; read -t 1 < <(sleep 1)"
        result = sandbox.commands.run(f"for i in {{1..12}}; do ({grow}) & done; wait")
        assert re.search("cannot allocate|Out of memory|memory_limit_bytes", result.stderr)
        assert sandbox.commands.run("echo alive | cat").stdout == "alive\n"


def test_a_hundred_thousand_tiny_files_end_by_max_inodes(sandbox: Sandbox) -> None:
    command = "mkdir d; for ((i = 0; i < 100000; i++)); do : > d/$i || break; done; echo $i"
    result = sandbox.commands.run(command)
    assert 10_000 < int(result.stdout) < 65_536
    assert "No space left on device" in result.stderr
    assert sandbox.commands.run("rm -r d && echo room again > file").exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        "f() { f; }; f",
        "f() { ( f ); }; f",
        "f() { local x=$(f); }; f",
        "eval \"$(printf '(%.0s' {1..20000})\"",
        'x=1; for i in {1..20}; do x="($x)+($x)"; done; echo $((x))',
    ],
)
def test_endless_recursion_ends_with_an_error(sandbox: Sandbox, command: str) -> None:
    result = run_within(sandbox, 30, command, timeout_ms=10_000)
    assert result.exit_code != 0 or result.stdout or result.stderr


def test_five_thousand_levels_of_recursion_work_and_can_fork_there(sandbox: Sandbox) -> None:
    command = "f() { if (($1)); then f $(($1 - 1)); else echo bottom | cat; fi; }; f 5000"
    result = sandbox.commands.run(command)
    assert (result.stdout, result.stderr, result.exit_code) == ("bottom\n", "", 0)


def test_a_gigabyte_of_output_is_cut_at_max_output_bytes() -> None:
    with Sandbox(max_output_bytes=1 * MIB) as sandbox:
        result = sandbox.commands.run("yes | head -c 1G")
        assert result.truncated
        assert len(result.stdout_bytes) == 1 * MIB
        assert result.exit_code == 137
        assert result.stderr.endswith("raise max_output_bytes\n")
        assert sandbox.commands.run("echo alive | cat").stdout == "alive\n"


def test_a_gigabyte_of_errors_is_cut_at_max_output_bytes() -> None:
    with Sandbox(max_output_bytes=1 * MIB) as sandbox:
        result = sandbox.commands.run("yes | head -c 1G >&2; echo end")
        assert result.truncated
        assert len(result.stderr_bytes) < 1 * MIB + 200
        assert b"raise max_output_bytes\n" in result.stderr_bytes


def test_output_as_large_as_the_limit_is_whole() -> None:
    with Sandbox(max_output_bytes=100_000) as sandbox:
        result = sandbox.commands.run("head -c 100000 /dev/zero")
        assert (len(result.stdout_bytes), result.truncated, result.stderr) == (100_000, False, "")


def test_open_files_are_limited(sandbox: Sandbox) -> None:
    command = "for i in {1..2000}; do exec {fd}< /dev/null || break; done; echo $i"
    result = sandbox.commands.run(command)
    assert "Too many open files" in result.stderr
    assert 900 < int(result.stdout) <= 1024


def test_a_guest_cannot_kill_what_is_not_its_own(sandbox: Sandbox) -> None:
    with Sandbox() as other:
        other.files.write("a", "x")
        sandbox.commands.run("kill -9 -1; kill -9 1; kill -9 $PPID")
        assert other.commands.run("cat a").stdout == "x"


def test_a_sparse_file_of_a_terabyte_takes_no_memory(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("truncate -s 1T huge; echo $?")
    assert result.stdout in ("0\n", "1\n")
    assert sandbox.commands.run("head -c 5 huge | wc -c", timeout_ms=5_000).exit_code in (0, 124)


def test_deep_directories_and_long_names_end_with_errors(sandbox: Sandbox) -> None:
    deep = "d/" * 1500
    assert sandbox.commands.run(f"mkdir -p {deep} && cd {deep} && mkdir -p {deep}").exit_code == 0
    assert "File name too long" in sandbox.commands.run(f"ls {deep}{deep}").stderr
    assert "File name too long" in sandbox.commands.run(f"echo > {'x' * 300}").stderr
    assert sandbox.commands.run("rm -r d; ls").stdout == ""


def test_an_argument_list_that_is_too_long_is_refused(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("/bin/echo {1..1000000} | wc -c")
    assert "Argument list too long" in result.stderr
