"""time as a program: resources of a command, its exit status, its formats."""

from __future__ import annotations

import re

from wasmsand import Sandbox


def test_format_and_exit_status_are_the_commands(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("/usr/bin/time -f '%C: %x' sh -c 'exit 3'")
    assert result.exit_code == 3
    assert result.stderr.endswith("sh -c exit 3: 3\n")


def test_elapsed_time_and_memory_are_measured(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("/usr/bin/time -f '%e %M' sleep 0.3")
    elapsed, kilobytes = result.stderr.split()
    assert 0.3 <= float(elapsed) < 5
    assert int(kilobytes) > 100


def test_verbose_report_names_the_command(sandbox: Sandbox) -> None:
    report = sandbox.commands.run("/usr/bin/time -v true").stderr
    assert 'Command being timed: "true"' in report
    assert re.search(r"Maximum resident set size \(kbytes\): [1-9]", report)
    assert "Exit status: 0" in report


def test_report_goes_to_a_file(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("/usr/bin/time -o log -f '%x' false; tail -n 1 log")
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_command_that_is_not_there(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("/usr/bin/time no-such-command")
    assert result.exit_code == 127
    assert "no-such-command" in result.stderr
