"""What commands print.

Rules: results and progress go to standard output, warnings and errors to standard error, with the
words that pip uses; `-q` silences progress, `-qq` warnings too.
"""

from __future__ import annotations

import sys


class Printer:
    """The output of one command."""

    def __init__(self, quiet: int = 0) -> None:
        self._quiet = quiet

    def info(self, line: str) -> None:
        """Progress."""
        if not self._quiet:
            print(line)

    def warning(self, line: str) -> None:
        """Something that the user should know."""
        if self._quiet < 2:
            sys.stdout.flush()
            print(f"WARNING: {line}", file=sys.stderr)

    def error(self, line: str) -> None:
        """Why the command fails."""
        sys.stdout.flush()
        print(f"ERROR: {line}", file=sys.stderr)
