"""Output cut to what a model can use: its beginning, its end, and where the rest is.

Rules: a cut is always visible, says how much is missing, and names the file of the sandbox
that holds everything. Saved files are few: the oldest goes when a new one comes. If the
file system has no room for one, the cut says so instead.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque

from wasmsand.sdk.errors import FileError
from wasmsand.sdk.sandbox import Sandbox

SAVED_OUTPUT_DIRECTORY = "/tmp/tool-output"
_KEPT = 16


def head_and_tail(text: str, limit: int, where: str) -> str:
    """`text` of at most about `limit` characters: if it is longer, its first and last half
    of that, cut at line ends where there are any, and a line between them about `where`
    the rest is."""
    if len(text) <= limit:
        return text
    half = limit // 2
    head, tail = text[:half], text[-half:]
    # Whole lines are easier to read, but not at the price of much of the text.
    end = head.rfind("\n", half // 2) + 1
    head = head[: end or half]
    start = tail.find("\n", 0, half // 2) + 1
    tail = tail[start:]
    left_out = len(text) - len(head) - len(tail)
    newline = "" if head.endswith("\n") else "\n"
    return f"{head}{newline}[... {left_out} characters left out; {where} ...]\n{tail}"


class SavedOutputs:
    """Whole outputs in files of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._paths: deque[str] = deque()

    def save(self, content: bytes, kind: str) -> str | None:
        """The path that now holds `content`; None if there is no room for it."""
        with self._lock:
            path = f"{SAVED_OUTPUT_DIRECTORY}/{next(self._numbers)}.{kind}"
            while len(self._paths) >= _KEPT:
                self._remove(self._paths.popleft())
            try:
                self._sandbox.files.write(path, content)
            except FileError:
                return None
            self._paths.append(path)
            return path

    def _remove(self, path: str) -> None:
        try:
            self._sandbox.files.rm(path)
        except FileError:
            # Programs of the sandbox may have removed or replaced it.
            pass
