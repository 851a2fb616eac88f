"""Signals as a shell script sees them."""

from __future__ import annotations

from wasmsand import Sandbox


def test_a_trapped_signal_ends_wait_at_once() -> None:
    # bash's handler leaves waitpid(2) with longjmp.
    script = """
        trap 'echo got USR1' USR1
        sleep 20 &
        (sleep 0.5; kill -USR1 $$) &
        wait
        echo $?
        kill %1
    """
    with Sandbox() as sandbox:
        result = sandbox.commands.run(script, timeout_ms=10_000)
    assert (result.stdout, result.exit_code) == ("got USR1\n138\n", 0)
