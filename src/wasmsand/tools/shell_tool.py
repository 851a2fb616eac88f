"""`sandbox_run`: runs a script in the shell that the tools keep.

Rules: the answer says whether the shell's state is kept or lost, whenever that is not obvious.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from wasmsand.sdk.results import CommandResult
from wasmsand.sdk.shell import Shell
from wasmsand.tools.live_sessions import SHELL_WORDS, Interrupter, Words
from wasmsand.tools.workbench import Workbench, shortened


def run_script(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the script, and describe what it did."""
    observer = bench.observer
    timeout_ms = given["timeout_ms"] or bench.sandbox.options.timeout_ms
    printed = None if observer is None else observer.printed
    interrupter = Interrupter()

    def request(shell: Shell) -> CommandResult:
        if observer is not None:
            observer.started(interrupter)
        with nullcontext() if observer is None else interrupter.watching():
            return shell.run(
                given["command"],
                stdin=given["stdin"],
                timeout_ms=timeout_ms,
                on_stdout=printed,
                on_stderr=printed,
            )

    with bench.live.shell.turn(timeout_ms, fresh=given["restart"]) as turn:
        result = turn.run(request)
        notes = [turn.note, end_note(result, is_closed=turn.session.closed, words=SHELL_WORDS)]
    described: dict[str, Any] = {
        "exit_code": result.exit_code,
        "stdout": shortened(bench, result.stdout, result.stdout_bytes, "stdout"),
        "stderr": shortened(bench, result.stderr, result.stderr_bytes, "stderr"),
        "execution_time_ms": round(result.execution_time_ms),
    }
    if note := "; ".join(note for note in notes if note):
        described["note"] = note
    return described


def end_note(result: Any, *, is_closed: bool, words: Words) -> str | None:
    """What happened to the request and to the session, if there is anything to say."""
    what = None
    if result.truncated:
        what = "interrupted: it printed more than the sandbox's max_output_bytes"
    elif result.timed_out:
        what = "interrupted: it timed out; set a longer timeout_ms if it needs more time"
    if is_closed:
        state = f"the {words.session} has ended: {words.state} are lost, and the next call starts "
        state += "a new one"
    elif what is not None:
        state = f"the {words.session} goes on: {words.state} are kept"
    else:
        return None
    return f"{what}; {state}" if what else state
