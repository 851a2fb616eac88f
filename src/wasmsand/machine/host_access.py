"""How an operation of the host gets at a sandbox's files.

Owns `HostAccess`: the sandbox's lock, taken for one bounded step after another. Rules: one
step looks at, makes or removes at most `HOST_ENTRIES_PER_HOLD` entries of directories and
copies at most `IO_CHUNK` bytes; between two steps others have their turn, so whatever was
seen may be gone by then: a node that was removed is ENOENT. An operation ends with ESRCH at
its next step when the machine is closed meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import IMAGE_ENTRIES_MAX
from wasmsand.kernel.vfs import ROOT, Namespace, Node

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine


class HostAccess:
    """One operation's access. `with access as namespace:` is one step."""

    __slots__ = ("_machine", "_was_closed", "gid", "limits", "uid")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._was_closed = machine.closed
        self.limits = machine.kernel.limits
        self.uid, self.gid = machine.identity.uid, machine.identity.gid
        """Who owns what the operation makes."""

    def __enter__(self) -> Namespace:
        self._machine.lock.acquire()
        if self._machine.closed and not self._was_closed:
            self._machine.lock.release()
            raise KernelError(Errno.ESRCH, "the machine was closed")
        return self._machine.kernel.namespace

    def __exit__(self, *error: object) -> None:
        self._machine.lock.release()

    @property
    def most_entries(self) -> int:
        """How many entries a walk may meet: one that meets more is led in circles by a guest
        that keeps moving directories."""
        return 4 * self.limits.max_inodes + IMAGE_ENTRIES_MAX


def find(namespace: Namespace, base: Node, path: bytes) -> Node | None:
    """What is at a path, or None; a symbolic link is not followed."""
    try:
        return namespace.resolve(ROOT, base, path, follow=False)
    except KernelError as error:
        if error.errno in (Errno.ENOENT, Errno.ENOTDIR):
            return None
        raise
