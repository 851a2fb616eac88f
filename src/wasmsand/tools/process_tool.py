"""`sandbox_process`: writes to a started command, waits for its output, ends it.

Rules: one call does all that it is asked for, in the order input, wait, kill. What was lost is
counted in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wasmsand.tools.parameters import InvalidToolInput
from wasmsand.tools.workbench import Workbench, shortened


def process(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """Look after a command."""
    name = given["id"]
    if name is None:
        if given["input"] is not None or given["end_input"] or given["kill"]:
            raise InvalidToolInput("id is missing: which command of sandbox_start is meant?")
        return {"commands": bench.background.listed()}
    command = bench.background.find(name)
    notes: list[str | None] = []
    if given["input"]:
        notes.append(command.write(given["input"]))
    if given["end_input"]:
        command.end_input()
    if given["kill"]:
        command.kill()
    else:
        command.wait(given["wait_ms"] / 1000)
    state = command.described()
    text, dropped = command.take()
    if dropped:
        text = f"[... {dropped} characters omitted ...]\n{text}"
    state["output"] = shortened(bench, text, text.encode("utf-8", "replace"), "output")
    if note := "; ".join(note for note in notes if note):
        state["note"] = note
    return state
