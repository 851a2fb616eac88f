"""Watching files for changes: `sandbox.files.watch`.

Rules: a watch polls the tree and compares, so it works the same on every backend and does not slow
down the sandbox's programs; several changes of a file between two polls are one event, and a file
that was created and deleted between two polls causes none.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.errors import FileError
from wasmsand.sdk.results import FileInfo


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A change of a file."""

    type: Literal["created", "modified", "deleted"]
    path: str
    """Absolute path in the sandbox."""
    info: FileInfo | None
    """The file as it is now; None if it was deleted."""


class FileWatch:
    """The changes below a path since the watch began.

    Example:
        with sandbox.files.watch("src") as watch:
            for event in watch:
                print(event.type, event.path)
    """

    def __init__(
        self, attachment: Attachment, path: str, recursive: bool, interval_seconds: float
    ) -> None:
        self._attachment = attachment
        self._path = path
        self._recursive = recursive
        self._interval = interval_seconds
        self._closed = threading.Event()
        self._waiting: deque[FileEvent] = deque()
        self._seen = self._look()

    def poll(self) -> list[FileEvent]:
        """Return the changes since the last poll without waiting: deletions first, then by path.

        Example:
            [event.path for event in watch.poll()]
        """
        before, now = self._seen, self._look()
        self._seen = now
        gone = [FileEvent("deleted", path, None) for path in sorted(before.keys() - now.keys())]
        there = []
        for path, info in sorted(now.items()):
            old = before.get(path)
            if old is None:
                there.append(FileEvent("created", path, info))
            elif old != info:
                there.append(FileEvent("modified", path, info))
        return gone + there

    def __iter__(self) -> Iterator[FileEvent]:
        return self

    def __next__(self) -> FileEvent:
        """Wait for the next change and return it. The iteration ends when the watch is closed."""
        while not self._waiting:
            if self._closed.is_set():
                raise StopIteration
            self._waiting.extend(self.poll())
            if not self._waiting:
                self._closed.wait(self._interval)
        return self._waiting.popleft()

    def close(self) -> None:
        """End the watch and every iteration over it. Calling it again does nothing.

        Example:
            watch.close()
        """
        self._closed.set()

    def __enter__(self) -> FileWatch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FileWatch {self._path!r}{' closed' if self._closed.is_set() else ''}>"

    def _look(self) -> dict[str, FileInfo]:
        backend = self._attachment.backend
        try:
            found = [backend.stat(self._path)]
            if found[0].type == "dir":
                found = backend.list_directory(self._path, recursive=self._recursive)
        except FileError as error:
            if error.errno_name not in ("ENOENT", "ENOTDIR"):
                raise
            found = []
        return {info.path: info for info in found}
