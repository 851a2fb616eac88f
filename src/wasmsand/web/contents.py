"""Contents of the image's files that are fetched while other guests run.

Owns `ImageContents`. Rules: a guest that opens a file, or looks into a directory, whose bytes the
host does not have waits for them, and only that guest. If they cannot be fetched, the guest's read
fails. What the page itself reads is fetched at once, while the kernel waits.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.wait import OutsideWait, WaitQueue
from wasmsand.machine.image_directory import listing_wanted, read_part
from wasmsand.web.host import WebHost
from wasmsand.web.loop import Loop


class ImageContents:
    """What guests of one machine wait for."""

    def __init__(self, host: WebHost, loop: Loop) -> None:
        self._host = host
        self._loop = loop
        listing_wanted[:] = [self._want_listing]  # there is one machine at a time
        self._wanted: dict[str, WaitQueue] = {}
        self._tried: set[str] = set()
        """What was fetched, or could not be: nobody waits for it again."""

    def want(self, data: ImageData) -> None:
        """See `Kernel.content_wanted`."""
        load = data.load
        if not isinstance(load, partial) or load.func is not read_part:
            return  # a program, which is fetched when it is loaded
        self._want_part(*load.args)

    def _want_listing(self, path: Path, start: int, count: int) -> None:
        if self._loop.serves_guest:
            self._want_part(path, start, count)

    def _want_part(self, path: Path, start: int, count: int) -> None:
        """Return if the bytes can be read now, or could not be fetched."""
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
