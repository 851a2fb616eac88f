"""Contents of the image's files that are fetched while other guests run.

Owns `ImageContents`. Rules: a guest that opens a file whose bytes the host does not have waits for
them, and only that guest. If they cannot be fetched, the guest's read fails. What is read in other
ways, such as lists of directories, is fetched at once, while the kernel waits.
"""

from __future__ import annotations

from functools import partial

from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.wait import OutsideWait, WaitQueue
from wasmsand.machine.image_directory import read_part
from wasmsand.web.host import WebHost


class ImageContents:
    """What guests of one machine wait for."""

    def __init__(self, host: WebHost) -> None:
        self._host = host
        self._wanted: dict[str, WaitQueue] = {}
        self._tried: set[str] = set()
        """What was fetched, or could not be: nobody waits for it again."""

    def want(self, data: ImageData) -> None:
        """See `Kernel.content_wanted`."""
        load = data.load
        if not isinstance(load, partial) or load.func is not read_part:
            return  # a program, which is fetched when it is loaded
        path, start, count = load.args
        key = f"{path} {start} {count}"
        queue = self._wanted.get(key)
        if queue is None:
            if key in self._tried:
                self._tried.discard(key)
                return
            if self._host.has_bytes(str(path), start, count):
                return
            queue = self._wanted[key] = WaitQueue()
            self._host.fetch_bytes(key, str(path), start, count)
        raise OutsideWait(queue)

    def came(self, key: str) -> None:
        """The host has the bytes now, or cannot get them."""
        queue = self._wanted.pop(key, None)
        if queue is not None:
            self._tried.add(key)
            queue.wake()
