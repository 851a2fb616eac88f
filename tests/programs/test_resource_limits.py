"""Limits that a shell sets for the programs it starts."""

from __future__ import annotations

from wasmsand import Sandbox


def test_a_program_cannot_use_more_memory_than_ulimit_v() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run(
            "ulimit -v 40000; head -c 90000000 /dev/zero | tail -n 1 | wc -c; echo ${PIPESTATUS[1]}"
        )
    assert result.stdout == "0\n1\n"
    assert "memory exhausted" in result.stderr


def test_a_program_that_does_not_fit_is_not_started() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run(
            "(ulimit -v 100; cat /dev/null); echo $?; cat /dev/null; echo $?"
        )
    assert result.stdout == "126\n0\n"


def test_timeout_can_turn_core_dumps_off() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run("timeout -s QUIT 0.05 sleep 5; echo $?")
    assert (result.stdout, result.stderr) == ("124\n", "")
