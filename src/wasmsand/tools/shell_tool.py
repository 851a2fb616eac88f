"""`sandbox_run`: runs a script in the shell that the tools keep.

Rules: the answer says whether the shell's state is kept or lost, whenever that is not obvious.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from wasmsand.sdk.errors import FileError
from wasmsand.sdk.results import CommandResult, PythonResult
from wasmsand.sdk.shell import Shell
from wasmsand.tools.live_sessions import Interrupter, Turn
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
        if not turn.session.closed:
            turn.slot.directory = _directory(bench, turn.session)
        notes = [turn.note, end_note(result, turn), _crowding(bench)]
    described: dict[str, Any] = {
        "exit_code": result.exit_code,
        "stdout": shortened(bench, result.stdout, result.stdout_bytes, "stdout"),
        "stderr": shortened(bench, result.stderr, result.stderr_bytes, "stderr"),
        "execution_time_ms": round(result.execution_time_ms),
    }
    if note := "; ".join(note for note in notes if note):
        described["note"] = note
    return described


def _directory(bench: Workbench, shell: Shell) -> str | None:
    """The directory in which the shell is now."""
    try:
        return bench.sandbox.files.readlink(f"/proc/{shell.pid}/cwd")
    except FileError:
        return None  # it has just ended


def _crowding(bench: Workbench) -> str | None:
    """A warning before the shell cannot start programs any more."""
    count, most = len(bench.sandbox.commands.list()), bench.sandbox.options.max_processes
    if count * 10 < most * 9:
        return None
    return (
        f"{count} of {most} processes are in use: end background jobs, or use restart, before you "
        "start more"
    )


def end_note(result: CommandResult | PythonResult, turn: Turn[Any]) -> str | None:
    """What happened to the request and to the session, if there is anything to say."""
    what = None
    if result.truncated:
        what = "interrupted: it printed more than the sandbox's max_output_bytes"
    elif result.timed_out:
        what = "interrupted: it timed out; set a longer timeout_ms if it needs more time"
    words = turn.slot.words
    if turn.session.closed:
        return "; ".join(filter(None, [what, turn.slot.next_one]))
    if what is None:
        return None
    return f"{what}; the {words.session} goes on: {words.state} are kept"
