"""The commands that a document prints for a terminal.

Owns finding them: lines that begin with `$ ` or `wasmsand ` in a code block without a language,
with the lines that continue them (`> `). Rules: a command that the test cannot run is named in
`NOT_RUN`, with the reason; all others are run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

NOT_RUN = {
    "wasmsand shell": "interactive",
    "vim notes.txt": "needs a terminal; tests/cli/test_on_a_terminal.py has one",
    "wasmsand run top": "needs a terminal",
    "wasmsand serve &": "runs in the background; the test starts a server itself",
    "wasmsand run --port": "serves until it is interrupted",
    "wasmsand mcp --http": "serves until it is interrupted",
    "--allow-net": "reaches hosts outside",
    "export ": "the test sets the variable itself",
}
"""Parts of commands, and why the test leaves these commands out."""


def printed_commands(document: Path) -> list[str]:
    """The commands of a document, in order."""
    found: list[str] = []
    for line in _lines(document.read_text(encoding="utf-8")):
        if line.startswith(("$ ", "wasmsand ")):
            found.append(line.removeprefix("$ "))
        elif line.startswith("> ") and found:
            found[-1] += "\n" + line.removeprefix("> ")
    return found


def _lines(text: str) -> Iterator[str]:
    """The lines of the code blocks without a language."""
    block: str | None = None
    for line in text.splitlines():
        if line.startswith("```"):
            block = line if block is None else None
        elif block == "```":
            yield line


def reason_against(command: str) -> str | None:
    """Why a test does not run the command, or None."""
    return next((reason for part, reason in NOT_RUN.items() if part in command), None)
