"""Shortens output for a model: its beginning, its end, and where to find the rest.

Rules: the text at a cut says how much is missing, and names the file of the sandbox that has the
whole output, or says that the file system is full. Only a few files are kept; a new one replaces
the oldest.
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
    """Shorten `text` to about `limit` characters: its beginning and its end, cut at line ends if
    possible, with a line between them that contains `where`."""
    if len(text) <= limit:
        return text
    half = limit // 2
    head, tail = text[:half], text[-half:]
    # Prefer whole lines, but not if that loses much of the text.
    end = head.rfind("\n", half // 2) + 1
    head = head[: end or half]
    start = tail.find("\n", 0, half // 2) + 1
    tail = tail[start:]
    left_out = len(text) - len(head) - len(tail)
    newline = "" if head.endswith("\n") else "\n"
    return f"{head}{newline}[... {left_out} characters left out; {where} ...]\n{tail}"


class SavedOutputs:
    """Saves whole outputs in files of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._paths: deque[str] = deque()

    def save(self, content: bytes, kind: str) -> str | None:
        """Save `content`. Returns the path of the file; None if the file system is full."""
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
            # A program in the sandbox may have removed or replaced the file.
            pass
