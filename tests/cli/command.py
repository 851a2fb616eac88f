"""The `wasmsand` command as a user runs it: a process of its own."""

from __future__ import annotations

import subprocess
import sys

COMMAND = [sys.executable, "-m", "wasmsand"]


def wasmsand(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `wasmsand WORDS...` to its end, with `stdin` on a pipe."""
    return subprocess.run(
        [*COMMAND, *words], input=stdin, capture_output=True, timeout=120, check=False
    )
