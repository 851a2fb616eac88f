"""Access to a sandbox's files for operations of the host.

Owns `HostAccess`, which takes the sandbox's lock for one bounded step at a time. Rules: one step
reads, creates or removes at most `HOST_ENTRIES_PER_HOLD` directory entries and copies at most
`IO_CHUNK` bytes. Others may take the lock between two steps, so anything seen in one step may be
gone in the next: a removed node raises ENOENT. If the machine is closed, the operation fails with
ESRCH at its next step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import IMAGE_ENTRIES_MAX
from wasmsand.kernel.vfs import ROOT, Namespace, Node

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel
    from wasmsand.kernel.process.identity import Identity
    from wasmsand.machine.lock import SandboxLock


class HostMounts(Protocol):
    """What an operation of the host needs of a machine's mounts."""

    def look_again(self) -> None:
        """What was seen of mounted directories before is old."""


class HostedMachine(Protocol):
    """What an operation of the host needs of a machine, whatever drives its guests."""

    @property
    def lock(self) -> SandboxLock:
        """Guards all kernel state."""

    @property
    def closed(self) -> bool:
        """Whether its processes were ended for good."""

    @property
    def kernel(self) -> Kernel:
        """Files and processes."""

    @property
    def identity(self) -> Identity:
        """The sandbox's user."""

    @property
    def mounts(self) -> HostMounts:
        """What is mounted."""


class HostAccess:
    """The access of one operation. `with access as namespace:` is one step."""

    __slots__ = ("_machine", "_was_closed", "gid", "limits", "uid")

    def __init__(self, machine: HostedMachine) -> None:
        self._machine = machine
        self._was_closed = machine.closed
        machine.mounts.look_again()
        self.limits = machine.kernel.limits
        self.uid, self.gid = machine.identity.uid, machine.identity.gid
        """The owner of files that the operation creates."""

    def __enter__(self) -> Namespace:
        self._machine.lock.acquire()
        self._machine.lock.held_by_host = True
        if self._machine.closed and not self._was_closed:
            self._machine.lock.release_mine()
            raise KernelError(Errno.ESRCH, "the machine was closed")
        return self._machine.kernel.namespace

    def __exit__(self, *error: object) -> None:
        self._machine.lock.release_mine()

    @property
    def most_entries(self) -> int:
        """How many entries a walk may visit. A guest that keeps moving directories could lead a
        walk in circles; this bound ends it."""
        return 4 * self.limits.max_inodes + IMAGE_ENTRIES_MAX


def find(namespace: Namespace, base: Node, path: bytes) -> Node | None:
    """The node at a path, or None. A symbolic link at the end is not followed."""
    try:
        return namespace.resolve(ROOT, base, path, follow=False)
    except KernelError as error:
        if error.errno in (Errno.ENOENT, Errno.ENOTDIR):
            return None
        raise
