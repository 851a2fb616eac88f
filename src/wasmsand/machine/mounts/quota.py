"""What a sandbox has written to a mounted directory of the host.

Owns `WriteQuota`. Rules: bytes by which files grow and names that are created are counted before
they are written; what the sandbox removes again is given back, but never more than it wrote. The
methods may be called on any thread.
"""

from __future__ import annotations

import threading

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.outside import Key


class WriteQuota:
    """The bytes and names that a sandbox may add to one mounted directory."""

    def __init__(self, limit_bytes: int, max_inodes: int) -> None:
        self.limit_bytes = limit_bytes
        self.max_inodes = max_inodes
        self._lock = threading.Lock()
        # Guarded by the lock:
        self.used_bytes = 0
        self.used_inodes = 0
        self._grown: dict[Key, int] = {}
        """By file: how many of its bytes are counted. Only files that the sandbox has made grow
        are here."""
        self._made: dict[Key, int] = {}
        """By file: how many of its names the sandbox has made."""

    def room(self, wanted: int) -> int:
        """How many of `wanted` further bytes fit. ENOSPC if none do."""
        with self._lock:
            room = min(wanted, self.limit_bytes - self.used_bytes)
        if room <= 0 < wanted:
            raise KernelError(
                Errno.ENOSPC,
                f"the sandbox may add {self.limit_bytes} bytes to the mount; raise limit_bytes",
            )
        return room

    def grow(self, key: Key, count: int) -> None:
        """Count bytes by which a file is about to grow. ENOSPC if they do not fit."""
        if count <= 0:
            return
        with self._lock:
            if self.used_bytes + count > self.limit_bytes:
                raise KernelError(
                    Errno.ENOSPC,
                    f"the sandbox may add {self.limit_bytes} bytes to the mount; raise limit_bytes",
                )
            self.used_bytes += count
            self._grown[key] = self._grown.get(key, 0) + count

    def shrink(self, key: Key, count: int) -> None:
        """Give back bytes of a file that became shorter."""
        with self._lock:
            given = min(count, self._grown.get(key, 0))
            if given > 0:
                self.used_bytes -= given
                self._grown[key] -= given

    def take_name(self) -> None:
        """Count a name that is about to be created. ENOSPC if there are too many."""
        with self._lock:
            if self.used_inodes >= self.max_inodes:
                raise KernelError(
                    Errno.ENOSPC,
                    f"the sandbox may add {self.max_inodes} files to the mount; raise max_inodes",
                )
            self.used_inodes += 1

    def give_name(self) -> None:
        """The name was not created after all."""
        with self._lock:
            self.used_inodes -= 1

    def made(self, key: Key) -> None:
        """The name that was counted refers to this file."""
        with self._lock:
            self._made[key] = self._made.get(key, 0) + 1

    def names_made(self, key: Key) -> int:
        """How many names of a file the sandbox has made."""
        with self._lock:
            return self._made.get(key, 0)

    def removed(self, key: Key, *, last: bool) -> None:
        """A name of a file was removed; `last`: it has no other."""
        with self._lock:
            made = self._made.get(key, 0)
            if made:
                self.used_inodes -= 1
                self._made[key] = made - 1
                if made == 1:
                    del self._made[key]
            if last:
                self.used_bytes -= self._grown.pop(key, 0)
