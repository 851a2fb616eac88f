"""User and group identities of a process.

Owns `Identity`: real, effective and saved ids, and the changes that Linux allows. Rules: immutable;
a change returns a new object or raises EPERM.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs import Credentials


@dataclass(frozen=True, slots=True)
class Identity:
    """The user and group ids of a process."""

    uid: int
    euid: int
    suid: int
    gid: int
    egid: int
    sgid: int
    groups: frozenset[int] = frozenset()
    _credentials: Credentials = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Created once, because almost every path system call needs it.
        effective = Credentials(self.euid, self.egid, self.groups)
        object.__setattr__(self, "_credentials", effective)

    @classmethod
    def of(cls, uid: int, gid: int, groups: frozenset[int] = frozenset()) -> Identity:
        """An identity with equal real, effective and saved ids."""
        return cls(uid, uid, uid, gid, gid, gid, groups)

    def credentials(self) -> Credentials:
        """The credentials for file permission checks."""
        return self._credentials

    def real_credentials(self) -> Credentials:
        """The credentials for access(2)."""
        return Credentials(self.uid, self.gid, self.groups)

    def with_uids(self, real: int, effective: int, saved: int) -> Identity:
        """setresuid; -1 leaves an id as it is."""
        self._check((real, effective, saved), (self.uid, self.euid, self.suid))
        return replace(
            self,
            uid=self.uid if real < 0 else real,
            euid=self.euid if effective < 0 else effective,
            suid=self.suid if saved < 0 else saved,
        )

    def with_gids(self, real: int, effective: int, saved: int) -> Identity:
        """setresgid; -1 leaves an id as it is."""
        self._check((real, effective, saved), (self.gid, self.egid, self.sgid))
        return replace(
            self,
            gid=self.gid if real < 0 else real,
            egid=self.egid if effective < 0 else effective,
            sgid=self.sgid if saved < 0 else saved,
        )

    def _check(self, wanted: tuple[int, ...], allowed: tuple[int, ...]) -> None:
        if self.euid != 0 and any(w >= 0 and w not in allowed for w in wanted):
            raise KernelError(Errno.EPERM)
