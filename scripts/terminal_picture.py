"""Draws docs/assets/terminal.svg: a session in a sandbox, as a terminal shows it.

    python scripts/terminal_picture.py

The commands run for real, and their output is what the picture shows. Rules: the picture loads
nothing from other sites.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from wasmsand import Sandbox

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "assets" / "terminal.svg"
COMMANDS: Final = (
    "bash --version | head -1",
    "seq 1000 | awk '{ s += $1 } END { print s }'",
    "git init -q demo; cd demo; echo hi > a; git add a; git commit -qm first; git log --format=%s",
    "python3 -c 'import sys; print(sys.version.split()[0], sum(range(10)))'",
    "curl -sS https://example.com",
    "apt-get install cowsay",
)


def main() -> None:
    """Run the commands, and write the picture."""
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    with Sandbox() as sandbox, sandbox.shell() as shell:
        for command in COMMANDS:
            console.print(
                Text.assemble(("user@sandbox", "green"), ":", ("~", "blue"), "$ ", command)
            )
            result = shell.run(command)
            if result.stdout:
                console.print(Text(result.stdout.rstrip("\n")))
            if result.stderr:
                console.print(Text(result.stderr.rstrip("\n"), "red"))
    drawn = console.export_svg(title="wasmsand shell", theme=MONOKAI)
    # Any monospaced font of the reader's will do.
    drawn = re.sub(r"<!--.*?-->", "", drawn)
    drawn = re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn.replace("Fira Code, monospace", "ui-monospace, monospace"), "utf-8")


if __name__ == "__main__":
    main()
